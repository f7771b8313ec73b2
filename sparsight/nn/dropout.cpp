#include "sparsight/nn/dropout.h"

#include <vector>

#include <ATen/TensorOperators.h>

#include "sparsight/ops/random_fill.h"

namespace sparsight {

at::Tensor dropout(const at::Tensor& x, double rate, const RandomStream& stream, const at::Tensor& image) {
  if (rate == 0 || x.numel() == 0) return x;
  return x * keep_mask_rows(x, {x.size(0), x.numel() / x.size(0), image}, 1 - rate, stream).view(x.sizes());
}

at::Tensor drop_path(const at::Tensor& x, double rate, const RandomStream& stream, const at::Tensor& image) {
  if (rate == 0) return x;
  std::vector<int64_t> per_image(static_cast<size_t>(x.dim()), 1);
  per_image[0] = x.size(0);
  return x * keep_mask_rows(x, {x.size(0), 1, image}, 1 - rate, stream).view(per_image);
}

}  // namespace sparsight
