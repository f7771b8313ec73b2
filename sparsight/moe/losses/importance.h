// Importance: how much each expert is used, as a sum of gates or probabilities, and its balance. Letters: moe/axes.md;
// G groups.
#pragma once

#include <ATen/core/Tensor.h>

#include "sparsight/moe/routing.h"

namespace sparsight {

// The squared coefficient of variation, the balance measure of Shazeer et al. 2017 (section 4) and V-MoE.

// values: [...,E]. Returns [...]: variance / mean² over the last axis; 0 with zero gradient where the mean is 0 or
// E = 1. The variance is that of the population (divided by E), or `unbiased` (by E - 1, a factor of E / (E - 1)).
at::Tensor cv_squared(const at::Tensor& values, bool unbiased = false);

// The importance loss of Shazeer et al. 2017 (section 4, equations 6 and 7).

// [E]: sum of the gates of each expert's assignments, before capacity. If a token's gates sum to 1, the total is N.
at::Tensor importance(const Routing& routing);

// []: CV²(importance) over the whole batch. 0 at balance; E - 1 with everything on one expert.
at::Tensor importance_loss(const Routing& routing, bool unbiased = false);

// The importance loss of V-MoE (Riquelme et al. 2021, appendix A.2).

// [G,E]: sum over a group's tokens of the softmax of the clean logits.
at::Tensor dense_importance(const Routing& routing);

// []: the mean over groups of CV²(dense_importance); undefined for a router without logits. 0 at balance; E - 1 with
// everything on one expert.
at::Tensor vmoe_importance_loss(const Routing& routing, bool unbiased = false);

}  // namespace sparsight
