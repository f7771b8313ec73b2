// Every router, kind of expert and routing loss that a configuration can name.
#pragma once

#include <memory>
#include <vector>

#include "sparsight/core/registry.h"
#include "sparsight/moe/experts.h"
#include "sparsight/moe/losses/routing_loss.h"
#include "sparsight/moe/router.h"

namespace sparsight {

Registry<std::shared_ptr<Router>, RouterShape>& routers();
Registry<std::shared_ptr<Experts>, ExpertShape>& expert_kinds();
// In the order of their weights (LossOptions). A program adds its own before it reads a configuration.
const std::vector<RoutingLoss>& routing_losses();
// Raises UsageError where a loss or another setting of [losses] has the name already.
void add_routing_loss(RoutingLoss loss);

// The router that [router] of a resolved configuration chooses. It knows what it is registered as, which routers()
// alone does not tell it: errors name it, and what it returns is held to `shape`.
std::shared_ptr<Router> make_router(const Json& resolved, const RouterShape& shape);

}  // namespace sparsight
