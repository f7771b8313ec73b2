#include "sparsight/attacks/objective_options.h"

namespace sparsight {

void ObjectiveOptions::declare(OptionSet& set) {
  set.choice("loss", &loss, attack_loss_names(), "loss that the attack maximises");
  set.integer("passes", &passes, {1, 10000},
              "passes of a model with noise whose losses and gradients are averaged at each step (EOT)");
  router.declare(set);
}

Objective make_objective(const ObjectiveOptions& options) {
  return {attack_loss_named(options.loss), options.router, options.passes};
}

}  // namespace sparsight
