#include "sparsight/papers/pmoe/figures/joint_sweep.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "sparsight/report/format.h"
#include "sparsight/reproduce/line_fit.h"

namespace sparsight::pmoe {
namespace {

constexpr int64_t kCnnSamples = 1000;

std::optional<double> accuracy_at(const ResultTable& table, const JointSweep& sweep, int64_t value, int64_t samples) {
  return table.mean({{"model", "joint"}, {sweep.axis, value}, {"samples", samples}}, "accuracy");
}

}  // namespace

std::vector<Json> joint_jobs(const JointSweep& sweep, const FigureRun& run) {
  constexpr int64_t kFilters = 5;
  std::vector<Json> jobs;
  const int64_t trials = digit_scale(run, 5).trials;
  for (const int64_t samples : sweep.samples)
    for (const int64_t value : sweep.values) {
      TwoLayerSetting setting = two_layer_preset("paper", "joint", digit_shape());
      (sweep.axis == "experts" ? setting.experts : setting.patches) = value;
      setting.filters = kFilters;
      setting.init_std = 1 / std::sqrt(static_cast<double>(kFilters * setting.experts));
      for (int64_t trial = 0; trial < trials; ++trial)
        jobs.push_back(
            digit_job({{"model", "joint"}, {sweep.axis, value}, {"samples", samples}}, trial, "paper", setting, run));
    }
  const TwoLayerSetting cnn = two_layer_preset("paper", "cnn", digit_shape());
  const int64_t value = sweep.axis == "experts" ? cnn.experts : cnn.patches;
  const int64_t samples = run.scale == Scale::smoke ? sweep.samples.back() : kCnnSamples;
  for (int64_t trial = 0; trial < trials; ++trial)
    jobs.push_back(digit_job({{"model", "cnn"}, {sweep.axis, value}, {"samples", samples}}, trial, "paper", cnn, run));
  return jobs;
}

Json joint_row(const JointSweep& sweep, int64_t value, int64_t samples, double accuracy) {
  return {{"model", "joint"}, {sweep.axis, value}, {"samples", samples}, {"accuracy", accuracy}};
}

std::optional<int64_t> best_value(const ResultTable& table, const JointSweep& sweep, int64_t samples) {
  std::optional<int64_t> best;
  std::optional<double> maximum;
  for (const int64_t value : sweep.values) {
    const auto mean = accuracy_at(table, sweep, value, samples);
    if (!mean) return {};
    if (!maximum || *mean > *maximum) maximum = mean, best = value;
  }
  return best;
}

Claim falls_slowly(const ResultTable& table, const JointSweep& sweep, int64_t from) {
  Claim claim{cat("from ", from, " ", sweep.axis, " on, accuracy falls slowly"), "", {}};
  bool falls = true;
  for (const int64_t samples : sweep.samples) {
    std::vector<std::pair<double, double>> points;
    for (const int64_t value : sweep.values)
      if (const auto mean = accuracy_at(table, sweep, value, samples); mean && value >= from)
        points.emplace_back(std::pow(static_cast<double>(value), sweep.power), *mean);
    if (points.size() < 2) return {claim.text, "needs at least two measured values", {}};
    const LineFit fit = fit_line(points);
    claim.measured +=
        cat(claim.measured.empty() ? "" : "; ", samples, " samples: ", fixed(fit.offset, 1),
            fit.slope < 0 ? " - " : " + ", fixed(std::abs(fit.slope), 2), " ", sweep.axis, "^", sweep.power);
    falls = falls && fit.slope < 0;
  }
  claim.holds = falls;
  return claim;
}

Claim above_the_cnn(const ResultTable& table, const JointSweep& sweep) {
  const int64_t samples = sweep.samples.back();
  Claim claim{cat("joint training with ", samples, " samples is above the CNN with ", kCnnSamples), "not measured", {}};
  const auto best = best_value(table, sweep, samples);
  const int64_t all = sweep.axis == "experts" ? 1 : digit_shape().patches;
  const auto cnn = table.mean({{"model", "cnn"}, {sweep.axis, all}, {"samples", kCnnSamples}}, "accuracy");
  if (!best || !cnn) return claim;
  const double ours = *accuracy_at(table, sweep, *best, samples);
  claim.measured = cat(fixed(ours, 1), " % (", *best, " ", sweep.axis, ") against ", fixed(*cnn, 1), " %");
  claim.holds = ours > *cnn;
  return claim;
}

}  // namespace sparsight::pmoe
