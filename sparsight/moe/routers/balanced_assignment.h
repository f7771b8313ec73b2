// The linear assignment of tokens to experts with room for equally many each. Letters: moe/axes.md.
#pragma once

#include <ATen/core/Tensor.h>

namespace sparsight {

// scores: [N,E] of a floating type. Returns [N] int64: an expert for each token, none for more than ceil(N/E) tokens,
// such that the sum of scores falls short of the largest possible one by at most N * 1e-5 of the range of the finite
// scores. Infinity counts as far above all of these as they range, minus infinity and NaN as far below. On the CPU, in
// float64, and the same on every run.
at::Tensor balanced_assignment(const at::Tensor& scores);

}  // namespace sparsight
