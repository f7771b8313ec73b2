// The importance loss of V-MoE (Riquelme et al. 2021, appendix A.2). Letters: moe/axes.md; G groups.
#pragma once

#include "sparsight/moe/routing.h"

namespace sparsight {

// [G,E]: sum over a group's tokens of the softmax of the clean logits.
at::Tensor dense_importance(const Routing& routing);

// []: the mean over groups of CV²(dense_importance); undefined for a router without logits. 0 at balance; E - 1 with
// everything on one expert.
at::Tensor vmoe_importance_loss(const Routing& routing, bool unbiased = false);

}  // namespace sparsight
