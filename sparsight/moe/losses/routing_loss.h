// Auxiliary losses on routings, and their weights. Each is a pure function of a Routing.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sparsight/core/options.h"
#include "sparsight/moe/routing.h"

namespace sparsight {

// Variants of a loss in different publications.
struct LossVariants {
  bool threshold_gradient = true;
  bool threshold_score_gradient = false;
  bool unbiased_variance = false;
  std::string vmoe_load_of = "logits";
  std::string switch_counts = "auto";
  std::string switch_form = "switch";
  void declare(OptionSet& set);
};

struct RoutingLoss {
  std::string name;  // the setting of its weight in [losses]
  std::string help;
  at::Tensor (*value)(const Routing&,
                      const LossVariants&);  // [] unweighted, or undefined where the routing has no such term
  bool needs_target = false;                 // needs Routing::target: trained only with guided images
  bool needs_noise = false;                  // needs router noise
  OverRouters over_routers = OverRouters::sum;
};

// A loss that a router's paper trains with, and its weight there.
struct LossWeight {
  std::string name;  // of routing_losses()
  double weight = 0;
  std::string switch_counts{};  // of the switch loss: what its paper counts; empty: "mean"
};

// A loss of a single router, which needs that router's internals (Router::own_losses). It has no weight in [losses]; if
// the weight can be changed, the router has an option for it.
struct RouterLoss {
  std::string name;
  double weight = 0;
  std::function<at::Tensor(const Routing&)> value;  // as in RoutingLoss
};

// The [losses] section: one weight for each registered loss, -1 for that of the router's paper, and the variants. A
// weight of 0 skips the computation.
struct LossOptions {
  std::vector<double> weights;  // in the order of routing_losses()
  LossVariants variants;
  LossOptions();
  void declare(OptionSet& set);
};

// The options with every -1 replaced by the weight in `paper` (0 for losses not in it). Raises UsageError for other
// negative weights.
LossOptions with_default_weights(LossOptions options, const std::vector<LossWeight>& paper);

// The losses of one routing with a weight above 0, then its router's own losses; none for a soft routing.
std::vector<NamedLoss> compute_losses(const Routing& routing, const LossOptions& options,
                                      const std::vector<RouterLoss>& own = {});

// For the losses of one pass through a model: divides the value of each that counts as a mean by how many routers have
// a loss of its name, so that their sum is the mean.
void average_over_routers(std::vector<NamedLoss>& losses);

}  // namespace sparsight
