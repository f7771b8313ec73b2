// Figures about one routing, for logs and tests. Sums over an evaluation: analysis/routing_accumulator.h.
// Letters: moe/axes.md.
#pragma once

#include <vector>

#include "sparsight/moe/routing.h"

namespace sparsight {

struct RoutingStats {
  std::vector<double> count;        // [E] chosen assignments, before capacity
  std::vector<double> importance;   // [E] sums of the gates of the chosen assignments
  std::vector<double> smooth_load;  // [E] sums of load_probability, or the counts where the routing has no noise
  double cv_importance = 0;         // standard deviation / mean over experts; 0 where the mean is 0
  double cv_load = 0;               // of smooth_load
  double max_over_mean_load = 0;    // of smooth_load: 1 balanced, E all on one expert; 0 without tokens
  double max_over_mean_count = 0;   // of count
  double dropped = 0;               // fraction of the chosen assignments that capacity dropped
  double mean_top_gate = 0;         // mean gate of the first choices
};

RoutingStats routing_stats(const Routing& routing);

}  // namespace sparsight
