// Shared experts, which see every token in addition to the routed ones (DeepSeekMoE, Dai et al. 2024, section 3.2):
// their outputs are added without a gate. Letters: moe/axes.md.
#pragma once

#include "sparsight/moe/experts.h"

namespace sparsight {

// tokens: [N,D]. Returns [N,D]: the sum of the `count` experts' outputs for each token. Differentiable. The row of
// token j at expert s has the number (token number) * count + s.
at::Tensor run_shared_experts(const at::Tensor& tokens, Experts& experts, int64_t count, const TokenLayout& layout,
                              const ExpertContext& context = {});

}  // namespace sparsight
