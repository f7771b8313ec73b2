// The importance loss of Shazeer et al. 2017 (section 4, equations 6 and 7). Letters: moe/axes.md.
#pragma once

#include "sparsight/moe/routing.h"

namespace sparsight {

// [E]: sum of the gates of each expert's assignments, before capacity. If a token's gates sum to 1, the total is N.
at::Tensor importance(const Routing& routing);

// []: CV²(importance) over the whole batch. 0 at balance; E - 1 with everything on one expert.
at::Tensor importance_loss(const Routing& routing, bool unbiased = false);

}  // namespace sparsight
