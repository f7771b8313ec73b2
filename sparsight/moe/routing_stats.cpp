#include "sparsight/moe/routing_stats.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/zeros.h>

#include "sparsight/core/error.h"
#include "sparsight/moe/losses/importance.h"
#include "sparsight/moe/losses/load.h"

namespace sparsight {
namespace {

void add_to(std::vector<double>& sums, const at::Tensor& x) {
  const at::Tensor values = x.detach().to(at::kCPU, at::kDouble).contiguous();
  SPARSIGHT_CHECK(static_cast<size_t>(values.numel()) == sums.size());
  for (size_t e = 0; e < sums.size(); ++e) sums[e] += values.const_data_ptr<double>()[e];
}

// Counts the tokens with 0, 1, ... of the assignments with these tokens, without padding.
void add_tokens_with(std::vector<double>& sums, const at::Tensor& token, const Routing& routing) {
  at::Tensor count = at::bincount(token, {}, routing.tokens);
  if (routing.valid.defined()) count = count.masked_select(routing.valid);
  add_to(sums, at::bincount(count, {}, static_cast<int64_t>(sums.size())));
}

std::vector<double> up_to_maximum(std::vector<double> counts) {
  while (!counts.empty() && counts.back() == 0) counts.pop_back();
  return counts;
}

double sum_values(const std::vector<double>& v) { return std::accumulate(v.begin(), v.end(), 0.0); }

double cv(const std::vector<double>& v) {
  const double mean = sum_values(v) / static_cast<double>(v.size());
  if (mean == 0) return 0;
  double squares = 0;
  for (const double x : v) squares += (x - mean) * (x - mean);
  return std::sqrt(squares / static_cast<double>(v.size())) / mean;
}

double max_over_mean(const std::vector<double>& v) {
  const double sum = sum_values(v);
  return sum == 0 ? 0 : *std::max_element(v.begin(), v.end()) * static_cast<double>(v.size()) / sum;
}

// In nats.
double entropy_of_shares(const std::vector<double>& v) {
  const double sum = sum_values(v);
  double entropy = 0;
  for (const double x : v)
    if (x > 0) entropy -= x / sum * std::log(x / sum);
  return entropy;
}

}  // namespace

RoutingTotals::RoutingTotals(int64_t experts)
    : chosen(static_cast<size_t>(experts)),
      kept(chosen),
      importance(chosen),
      smooth_load(chosen),
      tokens_with(static_cast<size_t>(experts + 1)),
      tokens_with_kept(tokens_with) {}

void RoutingTotals::add(const Routing& routing) {
  const at::NoGradGuard no_grad;
  add_to(chosen, routing.chosen_count);
  add_to(kept, at::zeros({routing.experts}, routing.gate.options().dtype(at::kDouble))
                   .index_add_(0, routing.expert, routing.kept.to(at::kDouble)));
  add_to(importance, sparsight::importance(routing));
  add_to(smooth_load, sparsight::smooth_load(routing));
  const at::Tensor top = routing.gate.masked_select(routing.rank == 0);
  first_choices += static_cast<double>(top.numel());
  const double tokens_before = sum_values(tokens_with);
  add_tokens_with(tokens_with, routing.token, routing);
  add_tokens_with(tokens_with_kept, routing.token.masked_select(routing.kept), routing);
  if (top.numel() > 0) top_gate += top.sum(at::kDouble).item<double>();
  if (routing.metrics.empty()) return;
  const double tokens = sum_values(tokens_with) - tokens_before;  // without padding
  metric_tokens += tokens;
  if (metrics.empty())
    for (const RoutingMetric& metric : routing.metrics) metrics.push_back({metric.name, 0});
  SPARSIGHT_CHECK(metrics.size() == routing.metrics.size());
  for (size_t i = 0; i < metrics.size(); ++i) metrics[i].value += tokens * routing.metrics[i].value;
}

RoutingStats routing_stats(const RoutingTotals& totals) {
  RoutingStats stats;
  stats.count = totals.chosen;
  stats.kept = totals.kept;
  stats.importance = totals.importance;
  stats.smooth_load = totals.smooth_load;
  stats.cv_importance = cv(totals.importance);
  stats.cv_load = cv(totals.smooth_load);
  stats.max_over_mean_load = max_over_mean(totals.smooth_load);
  stats.max_over_mean_count = max_over_mean(totals.chosen);
  stats.usage_entropy = entropy_of_shares(totals.chosen);
  const double chosen = sum_values(totals.chosen);
  if (chosen > 0) stats.dropped = (chosen - sum_values(totals.kept)) / chosen;
  if (totals.first_choices > 0) stats.mean_top_gate = totals.top_gate / totals.first_choices;
  stats.tokens_with = up_to_maximum(totals.tokens_with);
  stats.tokens_with_kept = up_to_maximum(totals.tokens_with_kept);
  const double tokens = sum_values(totals.tokens_with);
  if (tokens > 0) stats.experts_per_token = chosen / tokens, stats.kept_per_token = sum_values(totals.kept) / tokens;
  stats.metrics = totals.metrics;
  for (RoutingMetric& metric : stats.metrics) metric.value /= std::max(1.0, totals.metric_tokens);
  return stats;
}

RoutingStats routing_stats(const Routing& routing) {
  RoutingTotals totals(routing.experts);
  totals.add(routing);
  return routing_stats(totals);
}

}  // namespace sparsight
