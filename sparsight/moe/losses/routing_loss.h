// Auxiliary losses on routings, and their weights. Each is a pure function of a Routing.
#pragma once

#include <string>
#include <vector>

#include "sparsight/core/options.h"
#include "sparsight/moe/routing.h"

namespace sparsight {

// Where publications differ about one loss.
struct LossVariants {
  bool threshold_gradient = true;
  bool threshold_score_gradient = false;
  bool unbiased_variance = false;
  std::string vmoe_load_of = "logits";
  std::string switch_counts = "mean";
  std::string switch_form = "switch";
  void declare(OptionSet& set);
};

struct RoutingLoss {
  std::string name;  // the setting of its weight in [losses]
  std::string help;
  at::Tensor (*value)(const Routing&,
                      const LossVariants&);  // [] unweighted, or undefined where the routing has no such term
};

// A loss that a router's paper trains with, and its weight there.
struct LossWeight {
  std::string name;  // of routing_losses()
  double weight = 0;
};

// The [losses] section: one weight for each registered loss, -1 for what the router's paper has, and the variants. A
// weight of 0 skips the computation.
struct LossOptions {
  std::vector<double> weights;  // in the order of routing_losses()
  LossVariants variants;
  LossOptions();
  void declare(OptionSet& set);
};

// The options with the weights of `paper` in place of every -1 (0 for what it does not name). Raises UsageError for
// other negative weights.
LossOptions with_paper_weights(LossOptions options, const std::vector<LossWeight>& paper);

// The terms of one routing whose weight is above 0; none of a routing that mixes tokens.
std::vector<NamedLoss> compute_losses(const Routing& routing, const LossOptions& options);

}  // namespace sparsight
