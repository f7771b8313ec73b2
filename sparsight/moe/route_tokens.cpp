#include "sparsight/moe/route_tokens.h"

#include "sparsight/moe/validate_router.h"

namespace sparsight {

Routing route_tokens(Router& router, const RouterInput& input, const RoutingPolicy& policy) {
  RouterInput routed_input = input;
  routed_input.threshold_gradient = policy.losses.variants.threshold_gradient;
  Routing routing = router.route(routed_input);
  if (routing.soft) return routing;
  set_capacity_groups(routing, policy.capacity, input.context.image, input.context.group);
  if (input.mode.losses) routing.losses = checked_losses(router, input, routing, policy.losses);
  apply_capacity(routing, policy.capacity, capacity_factor(policy.capacity, input.mode.capacity));
  return routing;
}

}  // namespace sparsight
