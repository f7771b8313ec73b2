#include "sparsight/attacks/routed/objective_options.h"

namespace sparsight {

void ObjectiveOptions::declare(OptionSet& set) {
  set.choice(
      "loss", &loss, attack_loss_names(),
      "loss that the attack maximises; auto: cross_entropy of images with one label, sigmoid_cross_entropy of images "
      "with several");
  set.integer("passes", &passes, {1, 10000},
              "passes of a model with noise whose losses and gradients are averaged at each step (EOT)");
  router.declare(set);
  routing.declare(set);
  path.declare(set);
}

Objective make_objective(const ObjectiveOptions& options) {
  options.router.check();
  return {attack_loss_named(options.loss), options.router, options.routing, options.path, options.passes};
}

}  // namespace sparsight
