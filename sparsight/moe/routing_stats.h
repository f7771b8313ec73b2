// Statistics of routings, for logs, evaluations and tests. Letters: moe/axes.md.
#pragma once

#include <vector>

#include "sparsight/moe/routing.h"

namespace sparsight {

// Sums over any number of routings of one layer.
struct RoutingTotals {
  explicit RoutingTotals(int64_t experts);
  void add(const Routing& routing);

  std::vector<double> chosen;       // [E] assignments, before capacity
  std::vector<double> kept;         // [E] assignments left after capacity
  std::vector<double> importance;   // [E] sums of the gates of those assignments
  std::vector<double> smooth_load;  // [E] expected assignments (losses/load.h); the counts where there is no noise
  double top_gate = 0;              // sum of the gates of first choices
  double first_choices = 0;
  // [0..E]: number of tokens with that many experts, without padding: chosen, and left after capacity.
  std::vector<double> tokens_with, tokens_with_kept;
  std::vector<RoutingMetric> metrics;  // of the router, each weighted by the routing's tokens
  double metric_tokens = 0;            // the sum of those weights
};

struct RoutingStats {
  std::vector<double> count;        // [E] chosen assignments, before capacity
  std::vector<double> kept;         // [E] assignments left after capacity
  std::vector<double> importance;   // [E]
  std::vector<double> smooth_load;  // [E]
  double cv_importance = 0;         // standard deviation / mean over experts; 0 where the mean is 0
  double cv_load = 0;               // of smooth_load
  double max_over_mean_load = 0;    // of smooth_load: 1 balanced, E all on one expert; 0 without tokens
  double max_over_mean_count = 0;   // of count
  double usage_entropy = 0;         // of the shares of count, in nats: ln E if balanced, 0 if all are one expert's
  double dropped = 0;               // fraction of the chosen assignments that capacity dropped
  double mean_top_gate = 0;         // mean gate of the first choices
  double experts_per_token = 0;     // mean number of chosen experts, before capacity
  double kept_per_token = 0;        // mean number of experts left after capacity
  // Tokens with 0, 1, ... experts, up to the maximum: chosen, and left after capacity.
  std::vector<double> tokens_with, tokens_with_kept;
  std::vector<RoutingMetric> metrics;  // of the router (Router::metrics): mean over routings, weighted by tokens
};

RoutingStats routing_stats(const RoutingTotals& totals);
RoutingStats routing_stats(const Routing& routing);

}  // namespace sparsight
