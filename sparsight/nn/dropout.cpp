#include "sparsight/nn/dropout.h"

#include <vector>

#include <ATen/TensorOperators.h>

#include "sparsight/ops/random_fill.h"

namespace sparsight {

at::Tensor dropout(const at::Tensor& x, double rate, const RandomStream& stream, int64_t first_image) {
  if (rate == 0 || x.numel() == 0) return x;
  const int64_t of_image = x.numel() / x.size(0);
  return x * keep_mask_like(x, x.sizes(), 1 - rate, stream, static_cast<uint64_t>(first_image * of_image));
}

at::Tensor drop_path(const at::Tensor& x, double rate, const RandomStream& stream, int64_t first_image) {
  if (rate == 0) return x;
  std::vector<int64_t> per_image(static_cast<size_t>(x.dim()), 1);
  per_image[0] = x.size(0);
  return x * keep_mask_like(x, per_image, 1 - rate, stream, static_cast<uint64_t>(first_image));
}

}  // namespace sparsight
