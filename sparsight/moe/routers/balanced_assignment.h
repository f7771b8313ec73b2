// The linear assignment of tokens to experts of equal capacity. Letters: moe/axes.md.
#pragma once

#include <ATen/core/Tensor.h>

namespace sparsight {

// scores: [N,E] of a floating type. Returns [N] int64: an expert for each token, none for more than ceil(N/E) tokens,
// such that the sum of scores falls short of the largest possible one by at most N * 1e-5 of the range of the finite
// scores. Infinity counts as one range above the largest, minus infinity and NaN as one range below the lowest. On the
// CPU, in float64, deterministic.
at::Tensor balanced_assignment(const at::Tensor& scores);

}  // namespace sparsight
