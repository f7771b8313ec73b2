// The auxiliary losses of routers as something to attack: section 4.4 of Puigcerver et al. 2022 attacks the cross
// entropy plus the training's balance losses.
#pragma once

#include <string>
#include <vector>

#include "sparsight/core/options.h"
#include "sparsight/models/model_output.h"

namespace sparsight {

struct RouterLossOptions {
  // Names in ModelOutput::losses, with their weights of training; or "name=weight" for any loss of [losses], computed
  // from the pass's routings whether the model was trained with it or not. "gshard" is the switch loss of first
  // choices.
  std::vector<std::string> router_losses;
  double router_weight = 1;  // multiplies all these weights
  double task_weight = 1;    // of the loss of the logits; 0: the others alone
  void declare(OptionSet& set);
  // Raises UsageError for a weight that is no number of at least 0, and for an unknown name with a weight.
  void check() const;
};

// []: the weighted sum over the chosen losses and the routers (RoutingLoss::over_routers), differentiable; 0 without
// any. Raises Error where the pass does not have one of them: a load loss without router noise is refused.
at::Tensor router_loss(const ModelOutput& output, const RouterLossOptions& options);

}  // namespace sparsight
