// The settings that attacks with a choice of losses share.
#pragma once

#include "sparsight/attacks/routed/objective.h"

namespace sparsight {

struct ObjectiveOptions {
  std::string loss = "auto";
  int64_t passes = 1;
  RouterLossOptions router = {};
  RoutingAttackOptions routing = {};
  GradientPath path = {};
  void declare(OptionSet& set);
};
Objective make_objective(const ObjectiveOptions& options);

}  // namespace sparsight
