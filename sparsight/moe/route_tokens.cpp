#include "sparsight/moe/route_tokens.h"

#include <algorithm>

#include "sparsight/core/error.h"
#include "sparsight/moe/losses/token_sums.h"
#include "sparsight/moe/validate_router.h"

namespace sparsight {
namespace {

// The random numbers that a router uses are those it declares: Python and `sparsight moe` give them by these names.
void check_purposes(const Router& router, const std::string& layer, const std::set<std::string>& requested) {
  if (requested.empty()) return;
  const std::vector<std::string> declared = router.random_purposes();
  for (const std::string& purpose : requested)
    if (std::find(declared.begin(), declared.end(), purpose) == declared.end())
      fail(router_title(router, layer), " samples the random numbers \"", purpose,
           "\", which its random_purposes() does not list; add \"", purpose, "\" there");
}

// Capacity and losses assume K choices per token, unless the router says otherwise.
void check_choices(const Router& router, const std::string& layer, const Routing& routing) {
  if (routing.soft || routing.per_token == 0 || routing.varying || routing.skips) return;
  const int64_t tokens = valid_token_count(routing), assignments = routing.expert.size(0);
  const bool right =
      tokens == 0 ? assignments == 0 : assignments % tokens == 0 && assignments / tokens == routing.per_token;
  if (!right)
    fail(router_title(router, layer), " returned an invalid routing: ", assignments, " assignments of ", tokens,
         " tokens, expected per_token = ", routing.per_token,
         " each; set varying = true if tokens have different numbers of experts");
}

}  // namespace

int64_t add_route(engine::ProgramBuilder& builder, const std::string& layer, engine::Value tokens, const Router& router,
                  const RoutingPolicy& policy) {
  const double factor = capacity_factor(policy.capacity, /*training=*/false);
  if (factor > 0 && policy.capacity.priority == "given")
    fail("[capacity] priority = \"given\" has no form without tensors: the caller gives the priorities");
  return builder.add_route(layer, tokens, router.compile(), {policy.capacity, factor, policy.gates});
}

Routing route_tokens(Router& router, const RouterInput& input, const RoutingPolicy& policy) {
  RouterInput routed_input = input;
  routed_input.threshold_gradient = policy.losses.variants.threshold_gradient;
  std::set<std::string> requested;
  routed_input.context.requested = &requested;
  Routing routing = router.route(routed_input);
  check_purposes(router, input.layer, requested);
  check_choices(router, input.layer, routing);
  routing.sampled = !requested.empty();
  if (input.context.requested) input.context.requested->merge(requested);
  if (routing.soft) return routing;
  set_capacity_groups(routing, policy.capacity, input.context.image, input.context.group);
  if (input.mode.losses) routing.losses = checked_losses(router, input, routing, policy.losses);
  apply_capacity(routing, policy.capacity, capacity_factor(policy.capacity, input.mode.capacity));
  apply_gate_rule(routing, policy.gates);
  return routing;
}

}  // namespace sparsight
