// Fills expert slots with mixtures of tokens and mixes the outputs (Soft MoE). Letters: moe/axes.md.
#pragma once

#include "sparsight/moe/experts.h"
#include "sparsight/moe/soft_routing.h"

namespace sparsight {

// tokens: [N,D]. Returns [N,D]: combine * experts(dispatch^T * tokens), image by image. Slot p of image number b has
// the row number b * P + p.
at::Tensor run_soft_experts(const at::Tensor& tokens, const SoftRouting& routing, Experts& experts,
                            const ExpertContext& context = {});

}  // namespace sparsight
