#include "sparsight/moe/losses/routing_loss.h"

#include "sparsight/moe/register_moe.h"

namespace sparsight {

LossOptions::LossOptions() {
  for (const RoutingLoss& loss : routing_losses()) weights.push_back(loss.default_weight);
}

void LossOptions::declare(OptionSet& set) {
  for (size_t i = 0; i < weights.size(); ++i)
    set.real(routing_losses()[i].name, &weights[i], {0, 1e6}, "weight of " + routing_losses()[i].help);
}

std::vector<NamedLoss> compute_losses(const Routing& routing, const LossOptions& options) {
  std::vector<NamedLoss> losses;
  for (size_t i = 0; i < options.weights.size(); ++i) {
    if (options.weights[i] == 0) continue;
    const RoutingLoss& loss = routing_losses()[i];
    if (const at::Tensor value = loss.value(routing); value.defined())
      losses.push_back({loss.name, value, options.weights[i]});
  }
  return losses;
}

}  // namespace sparsight
