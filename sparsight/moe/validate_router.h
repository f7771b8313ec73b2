// Calls a router's own functions and checks what they return, so that a mistake in a router is an error of one line
// that names the router and the layer. (Its routings: validate_routing.h, which Router::route calls.)
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sparsight/moe/losses/routing_loss.h"
#include "sparsight/moe/router.h"

namespace sparsight {

// "the router my_topk of the layer blocks.1.mlp"; layer "": without it.
std::string router_title(const Router& router, const std::string& layer);

// Calls `call`, which runs the router's function of that name. InvalidRouting, and whatever is not an Error, is raised
// again as an Error of one line that begins with the router's title.
void call_router(const Router& router, const std::string& layer, const char* function,
                 const std::function<void()>& call);

// Router::cost(): finite, 0 or above, no more experts per token than there are. Raises Error.
RouterCost checked_cost(const Router& router, const std::string& layer, const TokenLayout& layout);

// The options with every -1 replaced by the weight in Router::default_losses(), whose names must be known; that of a
// load loss by 0 where the router has no noise. Raises Error, and UsageError for a load loss with a weight but no
// noise.
LossOptions with_router_weights(const LossOptions& options, const Router& router, const std::string& layer);

// The losses of a routing (compute_losses) with Router::own_losses(): named once each, scalars of a floating type,
// finite if tokens, weights and logits are. Raises Error.
std::vector<NamedLoss> checked_losses(const Router& router, const RouterInput& input, const Routing& routing,
                                      const LossOptions& options);

// Router::metrics(): named once each and not as a registered loss, finite if tokens, weights and logits are. Raises
// Error.
std::vector<RoutingMetric> checked_metrics(const Router& router, const RouterInput& input, const Routing& routing);

}  // namespace sparsight
