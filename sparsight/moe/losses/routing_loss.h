// Auxiliary losses on routings, and their weights. Each is a pure function of a Routing.
#pragma once

#include <functional>
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
  bool needs_target = false;                 // of Routing::target: trained only where images are guided
};

// A loss that a router's paper trains with, and its weight there.
struct LossWeight {
  std::string name;  // of routing_losses()
  double weight = 0;
};

// A loss that one router brings along, because it needs what only that router knows (Router::own_losses). It has no
// weight in [losses]: a router that lets it be changed has an option for it.
struct RouterLoss {
  std::string name;
  double weight = 0;
  std::function<at::Tensor(const Routing&)> value;  // as in RoutingLoss
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
LossOptions with_default_weights(LossOptions options, const std::vector<LossWeight>& paper);

// The terms of one routing whose weight is above 0, then those of its router's own losses; none of a routing that mixes
// tokens.
std::vector<NamedLoss> compute_losses(const Routing& routing, const LossOptions& options,
                                      const std::vector<RouterLoss>& own = {});

}  // namespace sparsight
