#include "sparsight/nn/dropout.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>

#include "sparsight/ops/random_fill.h"

namespace sparsight {

at::Tensor dropout(const at::Tensor& x, double rate, const RandomStream& stream, const at::Tensor& image) {
  if (rate == 0 || x.numel() == 0) return x;
  return x * keep_mask_rows(x, {x.size(0), x.numel() / x.size(0), image}, 1 - rate, stream).view(x.sizes());
}

DropoutMask token_dropout(const TokenRows& rows, double rate, const RandomStream& stream) {
  if (rate == 0) return {};
  const at::Tensor image = rows.image.defined() ? rows.image.to(at::kCPU) : at::arange(rows.images, at::kLong);
  const at::Tensor number = (image.unsqueeze(1) * rows.tokens + at::arange(rows.first, at::kLong)).flatten();
  return dropout_mask({rows.images * rows.first, rows.width, number}, 1 - rate, stream);
}

at::Tensor token_drop_path(const TokenRows& rows, double rate, const RandomStream& stream) {
  if (rate == 0) return {};
  return keep_mask_rows(at::empty({0}, at::kFloat), {rows.images, 1, rows.image}, 1 - rate, stream)
      .expand({rows.images, rows.first})
      .reshape({-1});
}

}  // namespace sparsight
