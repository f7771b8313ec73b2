// Auxiliary losses on routings, and their weights. Each is a pure function of a Routing.
#pragma once

#include <string>
#include <vector>

#include "sparsight/core/options.h"
#include "sparsight/moe/routing.h"

namespace sparsight {

struct RoutingLoss {
  std::string name;  // the setting of its weight in [losses]
  std::string help;
  double default_weight = 0;
  at::Tensor (*value)(const Routing&);  // [] unweighted, or undefined where the routing has no such term
};

// One computed loss.
struct NamedLoss {
  std::string name;   // "importance", summed over layers under one name by the trainer
  at::Tensor value;   // [] fp32, unweighted, differentiable
  double weight = 0;  // what the trainer multiplies it by
};

// The [losses] section: one weight for each registered loss. A weight of 0 skips the computation.
struct LossOptions {
  std::vector<double> weights;  // in the order of routing_losses()
  LossOptions();
  void declare(OptionSet& set);
};

// The terms of one routing whose weight is not 0.
std::vector<NamedLoss> compute_losses(const Routing& routing, const LossOptions& options);

}  // namespace sparsight
