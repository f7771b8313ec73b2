// Router statistics of an evaluation: how often each expert was used, by which class, and how evenly.
// Letters: moe/axes.md; K here is classes.
//
// Reported for each MoE layer, in forward order:
//   load        [E] assignments chosen by the router, before capacity
//   kept        [E] assignments left after capacity; only if some were dropped
//   importance  [E] sum of the gates of all chosen assignments (Shazeer et al. 2017, equation 6)
//   cv_load, cv_importance  standard deviation over experts divided by the mean (0: balanced; its square is the value
//               of the losses); 0 if nothing was routed. The load is the smooth one if the router has noise
//   max_over_mean  the busiest expert's load over the mean load (1: balanced, E: everything on one expert)
//   max_over_mean_load  the same of the smooth load
//   usage_entropy  entropy in nats of the experts' shares of the chosen assignments (ln E: balanced, 0: all on one)
//   dropped     fraction of the chosen assignments that capacity dropped
//   mean_top_gate  mean gate of the first choices (rank 0)
//   experts_per_token  mean number of experts that a token chose, before capacity
//   kept_per_token  mean number of experts left to a token after capacity
//   experts_per_image, experts_per_image_max  different experts that computed tokens of an image, after capacity: mean
//               and maximum over images (in layers() only)
//   tokens_with, tokens_with_kept  tokens with 0, 1, ... experts, chosen and left; the second only if some were dropped
//   class_information  what the experts tell about the class (analysis/class_information.h), of all chosen assignments,
//               before capacity, as in class_expert (in layers() only; absent unless two images of known class were
//               routed)
//   router      {name: value}, the router's own metrics (Router::metrics), averaged over tokens; only if it has any
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sparsight/analysis/class_information.h"
#include "sparsight/core/options.h"
#include "sparsight/moe/routing_stats.h"

namespace sparsight {

// The statistics of single routings without counts of each expert: [{"layer", "cv_load", ..., "tokens_with"}].
Json routing_balance(const std::vector<Routing>& routings);

class RoutingAccumulator {
 public:
  // Adds one batch: its routings and labels ([B] int64, 0..classes-1; a label outside counts for the load but for no
  // class). Tokens are in order of images: N is a multiple of B. Raises Error if the number of experts or classes of a
  // layer changes between calls.
  void add(const std::vector<Routing>& routings, const at::Tensor& labels, int64_t classes);

  bool empty() const { return layers_.empty(); }

  // [{"layer", "experts", "load": [E], "importance": [E], "cv_load", ...}]: see above.
  Json layers() const;
  // {layer: [K][E] counts of chosen assignments}
  Json class_expert() const;

 private:
  struct Layer {
    std::string name;
    int64_t experts = 0, classes = 0;
    RoutingTotals totals;
    int64_t all_images = 0;                   // also those of unknown class
    int64_t distinct = 0, most_distinct = 0;  // experts per image: sum and maximum over images
    std::vector<int64_t> by_class;            // [K,E] chosen assignments
    ImageExperts images;                      // those of known class
  };
  Layer& layer(const Routing& routing, int64_t classes);
  std::vector<Layer> layers_;
};

}  // namespace sparsight
