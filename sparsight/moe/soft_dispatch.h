// Feeds expert slots with mixtures of tokens and mixes what comes back (Soft MoE). Letters: moe/axes.md.
#pragma once

#include "sparsight/moe/experts.h"
#include "sparsight/moe/soft_routing.h"

namespace sparsight {

// tokens: [N,D]. Returns [N,D]: combine * experts(dispatch^T * tokens), image by image. random: while training; slot p
// of image b (counted from the image of first_token on) is the row with the number b * P + p.
at::Tensor run_soft_experts(const at::Tensor& tokens, const SoftRouting& routing, Experts& experts,
                            const std::optional<ExpertRandom>& random = {});

}  // namespace sparsight
