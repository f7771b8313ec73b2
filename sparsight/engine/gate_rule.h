// The rules of [moe] gates, which replace a router's gates.
//
// sum_to_one: gates that add up to 1 for each token, as Komatsuzaki et al. 2023 ("Sparse Upcycling", section 2) have
// them for vision: experts that are all copies of one MLP then compute what that MLP does. one: ungated experts,
// equation 1 of Puigcerver et al. 2022 ("On the Adversarial Robustness of Mixture of Experts") for one choice per
// token. The task's loss then has no gradient to the router. Letters: moe/axes.md.
#pragma once

#include "sparsight/engine/routing.h"

namespace sparsight {

enum class GateRule { router, sum_to_one, one };

namespace engine {

// Sets the gates by the rule (on tensors: moe/gate_sums.h). The sum is over a token's choices, dropped ones included; a
// token whose gates are all 0 keeps them.
void apply_gate_rule(Routing& routing, GateRule rule);

}  // namespace engine

}  // namespace sparsight
