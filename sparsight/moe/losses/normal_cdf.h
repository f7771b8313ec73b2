// The standard normal distribution function.
#pragma once

#include <ATen/core/Tensor.h>

namespace sparsight {

// Accurate in the lower tail, where (1 + erf) / 2 cancels. Differentiable.
at::Tensor normal_cdf(const at::Tensor& z);

// The same for difference / scale, with `scale` the standard deviation of the noise. A learned scale may underflow to
// 0: it is clamped to 1e-6, below which it gets no gradient.
at::Tensor normal_cdf(const at::Tensor& difference, const at::Tensor& scale);

}  // namespace sparsight
