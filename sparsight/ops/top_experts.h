// Top-k selection: the k experts of each token with the highest scores.
#pragma once

#include <ATen/core/Tensor.h>

namespace sparsight {

// scores: [N,E] fp32 or fp64; 1 <= k <= E. Returns [N,K] int64: distinct experts by decreasing score. Equal scores: the
// lowest index first. NaN ranks after everything else.
at::Tensor top_experts(const at::Tensor& scores, int64_t k);

}  // namespace sparsight
