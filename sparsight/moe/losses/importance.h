// The importance loss of Shazeer et al. 2017 (section 4, equations 6 and 7). Letters: moe/axes.md.
#pragma once

#include "sparsight/moe/routing.h"

namespace sparsight {

// [E]: sum of the gates of what was chosen, before capacity. With gates that sum to 1 for each token: N altogether.
at::Tensor importance(const Routing& routing);

// []: CV²(importance) over the whole pool. 0 at balance; E - 1 with everything on one expert.
at::Tensor importance_loss(const Routing& routing, bool unbiased = false);

}  // namespace sparsight
