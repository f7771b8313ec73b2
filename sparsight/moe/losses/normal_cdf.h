// The standard normal distribution function.
#pragma once

#include <ATen/core/Tensor.h>

namespace sparsight {

// Keeps its digits in the lower tail, where (1 + erf) / 2 loses them all. Differentiable.
at::Tensor normal_cdf(const at::Tensor& z);

}  // namespace sparsight
