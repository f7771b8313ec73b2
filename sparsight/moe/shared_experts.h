// Experts beside the routed ones that see every token (DeepSeekMoE, Dai et al. 2024, section 3.2): their outputs are
// added without a gate. Letters: moe/axes.md.
#pragma once

#include "sparsight/moe/experts.h"

namespace sparsight {

// tokens: [N,D]. Returns [N,D]: the sum of the `count` experts' outputs for each token. Differentiable. The row of
// token j at expert s has the number (number of the token) * count + s.
at::Tensor run_shared_experts(const at::Tensor& tokens, Experts& experts, int64_t count, const TokenLayout& layout,
                              const ExpertContext& context = {});

}  // namespace sparsight
