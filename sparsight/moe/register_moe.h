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
// Raises UsageError if a loss or another setting of [losses] already has the name.
void add_routing_loss(RoutingLoss loss);

// The router in [router] of a resolved configuration. Unlike one from routers() it has its registered name, which
// errors mention, and its routings are checked against `shape`.
std::shared_ptr<Router> make_router(const Json& resolved, const RouterShape& shape);

}  // namespace sparsight
