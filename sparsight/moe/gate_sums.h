// The rules of [moe] gates (engine/gate_rule.h) on tensors. Letters: moe/axes.md.
#pragma once

#include "sparsight/engine/gate_rule.h"
#include "sparsight/moe/routing.h"

namespace sparsight {

// Divides the gates by their sum over the token's choices, dropped ones included. With one choice per token the sum is
// a constant to the gradient, so that the gate is 1 and the router still learns, by d(log gate). A token whose gates
// are all 0 keeps them.
void normalize_gate_sums(Routing& routing);

// Sets the gates by the rule.
void apply_gate_rule(Routing& routing, GateRule rule);

}  // namespace sparsight
