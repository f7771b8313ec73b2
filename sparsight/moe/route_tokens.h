// The steps of routing in one place: the router chooses, auxiliary losses are computed on its choices, capacity drops
// some. Letters: moe/axes.md.
#pragma once

#include "sparsight/moe/capacity.h"
#include "sparsight/moe/gate_sums.h"
#include "sparsight/moe/losses/routing_loss.h"
#include "sparsight/moe/router.h"

namespace sparsight {

// The sections [capacity] and [losses], with every -1 replaced by the router's default, and [moe] gates.
struct RoutingPolicy {
  CapacityOptions capacity;
  LossOptions losses;
  GateRule gates = GateRule::router;
};

// The complete decision. Losses are computed if input.mode.losses, from the gates before drops.
Routing route_tokens(Router& router, const RouterInput& input, const RoutingPolicy& policy);

}  // namespace sparsight
