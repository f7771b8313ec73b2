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
const std::vector<RoutingLoss>& routing_losses();

}  // namespace sparsight
