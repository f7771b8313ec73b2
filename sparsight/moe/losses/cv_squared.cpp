#include "sparsight/moe/losses/cv_squared.h"

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

namespace sparsight {

at::Tensor cv_squared(const at::Tensor& values, bool unbiased) {
  const at::Tensor mean = values.mean(-1, /*keepdim=*/true);
  const auto n = static_cast<double>(values.size(-1));
  // Squared differences, not E[v²] - mean²: the difference cancels near balance.
  const at::Tensor variance = (values - mean).square().sum(-1) / (unbiased ? std::max(1.0, n - 1) : n);
  const at::Tensor centre = mean.squeeze(-1);
  const at::Tensor empty = centre == 0;
  const at::Tensor divisor = at::where(empty, at::ones_like(centre), centre.square());
  return at::where(empty, at::zeros_like(centre), variance / divisor);
}

}  // namespace sparsight
