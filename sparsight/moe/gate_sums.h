// The rules of [moe] gates, which replace a router's gates.
//
// sum_to_one: gates that add up to 1 for each token, as Komatsuzaki et al. 2023 ("Sparse Upcycling", section 2) have
// them for vision: experts that are all copies of one MLP then compute what that MLP does. one: ungated experts,
// equation 1 of Puigcerver et al. 2022 ("On the Adversarial Robustness of Mixture of Experts") for one choice per
// token. The task's loss then has no gradient to the router. Letters: moe/axes.md.
#pragma once

#include "sparsight/moe/routing.h"

namespace sparsight {

enum class GateRule { router, sum_to_one, one };

// Divides the gates by their sum over the token's choices, dropped ones included. With one choice per token the sum is
// a constant to the gradient, so that the gate is 1 and the router still learns, by d(log gate). A token whose gates
// are all 0 keeps them.
void normalize_gate_sums(Routing& routing);

// Sets the gates by the rule.
void apply_gate_rule(Routing& routing, GateRule rule);

}  // namespace sparsight
