#include "sparsight/moe/routing_stats.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

#include "sparsight/moe/losses/load.h"

namespace sparsight {
namespace {

std::vector<double> to_doubles(const at::Tensor& x) {
  const at::Tensor values = x.detach().to(at::kCPU, at::kDouble).contiguous();
  return {values.const_data_ptr<double>(), values.const_data_ptr<double>() + values.numel()};
}

double mean_of(const std::vector<double>& v) {
  return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
}

double cv(const std::vector<double>& v) {
  const double mean = mean_of(v);
  if (mean == 0) return 0;
  double squares = 0;
  for (const double x : v) squares += (x - mean) * (x - mean);
  return std::sqrt(squares / static_cast<double>(v.size())) / mean;
}

double max_over_mean(const std::vector<double>& v) {
  const double mean = mean_of(v);
  return mean == 0 ? 0 : *std::max_element(v.begin(), v.end()) / mean;
}

}  // namespace

RoutingStats routing_stats(const Routing& routing) {
  RoutingStats stats;
  const at::Tensor gate = routing.gate.detach().to(at::kDouble);
  stats.count = to_doubles(routing.chosen_count);
  stats.importance = to_doubles(at::zeros({routing.experts}, gate.options()).index_add_(0, routing.expert, gate));
  const at::Tensor probability = load_probability(routing);
  stats.smooth_load = probability.defined() ? to_doubles(probability.detach().sum(0)) : stats.count;
  stats.cv_importance = cv(stats.importance);
  stats.cv_load = cv(stats.smooth_load);
  stats.max_over_mean_load = max_over_mean(stats.smooth_load);
  stats.max_over_mean_count = max_over_mean(stats.count);
  const auto chosen = static_cast<double>(routing.expert.size(0));
  if (chosen == 0) return stats;
  stats.dropped = 1 - static_cast<double>(routing.order.size(0)) / chosen;
  const at::Tensor top = gate.masked_select(routing.rank == 0);
  if (top.numel() > 0) stats.mean_top_gate = top.mean().item<double>();
  return stats;
}

}  // namespace sparsight
