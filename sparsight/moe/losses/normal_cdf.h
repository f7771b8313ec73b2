// The standard normal distribution function.
#pragma once

#include <ATen/core/Tensor.h>

namespace sparsight {

// Keeps its digits in the lower tail, where (1 + erf) / 2 loses them all. Differentiable.
at::Tensor normal_cdf(const at::Tensor& z);

// The same of difference / scale, for noise of this standard deviation. A learned scale may underflow to 0: below 1e-6
// it counts as 1e-6, and nothing flows back into it.
at::Tensor normal_cdf(const at::Tensor& difference, const at::Tensor& scale);

}  // namespace sparsight
