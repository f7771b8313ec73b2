// The steps of routing in one place: the router chooses, auxiliary losses are computed on its choices, capacity drops
// some. Letters: moe/axes.md.
#pragma once

#include "sparsight/engine/program_builder.h"
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

// Adds the decision of evaluation to a program (engine/steps/route.h); returns its number. Raises Error where the
// router cannot be compiled, or [capacity] priority = "given" asks for numbers that only a caller has.
int64_t add_route(engine::ProgramBuilder& builder, const std::string& layer, engine::Value tokens, const Router& router,
                  const RoutingPolicy& policy);

// The complete decision. Losses are computed if input.mode.losses, from the gates before drops.
Routing route_tokens(Router& router, const RouterInput& input, const RoutingPolicy& policy);

}  // namespace sparsight
