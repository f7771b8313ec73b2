#include "sparsight/moe/route_tokens.h"

#include "sparsight/moe/gate_sums.h"

namespace sparsight {

Routing route_tokens(Router& router, const RouterInput& input, const RoutingPolicy& policy) {
  RouterInput asked = input;
  asked.threshold_gradient = policy.losses.variants.threshold_gradient;
  Routing routing = router.route(asked);
  if (routing.soft) return routing;
  set_capacity_groups(routing, policy.capacity, input.context.image, input.context.group);
  if (input.mode.losses) routing.losses = compute_losses(routing, policy.losses, router.own_losses());
  apply_capacity(routing, policy.capacity, capacity_factor(policy.capacity, input.mode.capacity));
  if (policy.normalize_gates) normalize_gate_sums(routing);
  return routing;
}

}  // namespace sparsight
