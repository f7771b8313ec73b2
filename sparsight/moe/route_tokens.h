// The order in which a routing comes about, written once: the router chooses, the auxiliary losses look at its choices,
// capacity drops some. Letters: moe/axes.md.
#pragma once

#include "sparsight/moe/capacity.h"
#include "sparsight/moe/losses/routing_loss.h"
#include "sparsight/moe/router.h"

namespace sparsight {

// The sections [capacity] and [losses], with the weights that the router's paper has in place of every -1.
struct RoutingPolicy {
  CapacityOptions capacity;
  LossOptions losses;
};

// The complete decision. Losses are computed where input.mode says so, of the gates before drops.
Routing route_tokens(Router& router, const RouterInput& input, const RoutingPolicy& policy);

}  // namespace sparsight
