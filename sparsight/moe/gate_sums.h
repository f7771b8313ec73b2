// Gates that add up to 1 for each token, as Komatsuzaki et al. 2023 ("Sparse Upcycling", section 2) have them for
// vision: experts that are all copies of one MLP then compute what that MLP does. Letters: moe/axes.md.
#pragma once

#include "sparsight/moe/routing.h"

namespace sparsight {

// Divides the gates by their sum over the token's choices, dropped ones included. With one choice per token the sum is
// a constant to the gradient, so that the gate is 1 and the router still learns, by d(log gate). A token whose gates
// are all 0 keeps them.
void normalize_gate_sums(Routing& routing);

}  // namespace sparsight
