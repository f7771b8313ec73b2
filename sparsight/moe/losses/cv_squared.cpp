#include "sparsight/moe/losses/cv_squared.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

namespace sparsight {

at::Tensor cv_squared(const at::Tensor& values) {
  const at::Tensor mean = values.mean();
  // Squared differences, not E[v²] - mean²: the difference cancels near balance.
  const at::Tensor variance = (values - mean).square().mean();
  const at::Tensor empty = mean == 0;
  const at::Tensor divisor = at::where(empty, at::ones_like(mean), mean.square());
  return at::where(empty, at::zeros_like(mean), variance / divisor);
}

}  // namespace sparsight
