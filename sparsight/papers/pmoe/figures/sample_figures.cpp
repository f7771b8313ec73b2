#include <algorithm>

#include "sparsight/core/error.h"
#include "sparsight/papers/pmoe/figures/pattern_runs.h"
#include "sparsight/papers/pmoe/figures/theory_figures.h"
#include "sparsight/papers/pmoe/theory/pattern_sweeps.h"
#include "sparsight/reproduce/figure_parts.h"
#include "sparsight/reproduce/log_slope.h"
#include "sparsight/reproduce/sample_search.h"

namespace sparsight::pmoe {
namespace {

// One property of the distribution or of the model that is varied.
struct SampleSweep {
  std::string axis;   // "l", "n", "delta_d", "delta_r", "p", "k"
  std::string title;  // "patches per expert"
  std::vector<std::string> models;
  std::vector<double> values;
  double exponent = 0;  // of the axis in the theorems' bound; 0: none to compare
  std::string claim;    // the order that the theorems predict
};

const std::vector<SampleSweep>& sample_sweeps() {
  static const std::vector<SampleSweep> all = {
      {"l",
       "patches per expert",
       {"separate", "joint"},
       {1, 2, 4, 8},
       8,
       "more patches per expert need more samples (l >= l* = 1)"},
      {"n", "patches per sample", {"CNN", "separate"}, {8, 16, 32, 64}, 8, "more patches need more samples"},
      {"delta_d",
       "inner product of the patterns",
       {"CNN", "separate"},
       {-0.5, 0, 0.5, 0.8},
       0,
       "closer patterns need more samples"},
      {"delta_r",
       "maximum inner product of patterns and irrelevant patches",
       {"CNN", "separate"},
       {0.05, 0.15, 0.25, 0.4},
       0,
       "irrelevant patches closer to the patterns need more samples"},
      {"p", "sets of irrelevant patches", {"CNN", "separate"}, {4, 8, 16, 32}, 12, "more sets need more samples"},
      {"k", "experts", {"joint"}, {2, 4, 8, 20}, 4, "more experts need more samples"}};
  return all;
}

constexpr double kTarget = 0.95;
// The numbers of samples to try.
std::vector<int64_t> sizes_of(const FigureRun& run) {
  if (run.scale == Scale::smoke) return {16, 64, 256};
  return {4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512};
}

bool reaches_target(const std::string& model, const std::string& axis, double value, int64_t samples, uint64_t seed) {
  PatternSweep data;
  int64_t taken = 2, experts = 8;
  if (axis == "l") taken = static_cast<int64_t>(value);
  if (axis == "n") data.patches = static_cast<int64_t>(value);
  if (axis == "delta_d") data.separation = value;
  if (axis == "delta_r") data.relevance = value;
  if (axis == "p") data.sets = static_cast<int64_t>(value);
  if (axis == "k") experts = static_cast<int64_t>(value);
  const PatternModel distribution(swept_patterns(data, seed));
  const PatchSet train = sample_set(distribution, "train", samples), test = sample_set(distribution, "test", 500);
  const PatternRun run = model == "CNN"     ? cnn_run()
                         : model == "joint" ? joint_run(experts, taken)
                                            : separate_run(taken);
  return train_two_layer(pattern_setting(run, train), train, test, {seed, seed}).accuracy >= kTarget;
}

std::vector<Json> sweep_jobs(const SampleSweep& sweep, const FigureRun& run) {
  std::vector<Json> jobs;
  const size_t values = by_scale<size_t>(run, 2, sweep.values.size(), sweep.values.size());
  for (const std::string& model : sweep.models)
    for (size_t i = 0; i < values; ++i)
      jobs.push_back({{"model", model}, {sweep.axis, sweep.values[i]}, {"trials", by_scale<int64_t>(run, 1, 7, 21)}});
  return jobs;
}

using Points = std::vector<std::pair<double, double>>;

Claim order_claim(const std::string& model, const SampleSweep& sweep, const Points& points, const FigureRun& run) {
  Claim order{cat(model, ": ", sweep.claim, " (within one step of the tried sizes)"), "", std::nullopt};
  bool rises = true;
  double maximum = 0;
  for (const auto& [x, samples] : points) {
    if (samples < maximum / 1.51) rises = false;
    maximum = std::max(maximum, samples);
    order.measured += cat(order.measured.empty() ? "" : ", ", shown_number(samples), " at ", shown_number(x));
  }
  if (std::ssize(points) < 2)
    order.measured = cat("not reached with ", sizes_of(run).back(), " samples");
  else if (run.scale != Scale::smoke)
    order.holds = rises;
  return order;
}

Claim fewer_than_cnn_claim(const ResultTable& table, const SampleSweep& sweep, const FigureRun& run) {
  Claim fewer{"separate training (l = 2) needs fewer samples than the CNN", "", std::nullopt};
  int64_t cells = 0, won = 0;
  for (const Json& value : table.values_of(sweep.axis)) {
    const auto cnn = table.mean({{"model", "CNN"}, {sweep.axis, value}}, "samples"),
               separate = table.mean({{"model", "separate"}, {sweep.axis, value}}, "samples");
    if (!separate) continue;
    ++cells;
    won += !cnn || *separate < *cnn;
  }
  fewer.measured = cat("in ", won, " of ", cells, " settings");
  if (cells > 0 && run.scale != Scale::smoke) fewer.holds = won == cells;
  return fewer;
}

std::vector<Claim> sweep_claims(const ResultTable& table, const SampleSweep& sweep, const FigureRun& run) {
  std::vector<Claim> claims;
  for (const std::string& model : sweep.models) {
    const auto points = measured_points(table, sweep.axis, "samples", {{"model", model}});
    claims.push_back(order_claim(model, sweep, points, run));
    if (sweep.exponent == 0 || std::ssize(points) < 2) continue;
    const double slope = log_log_slope(points);
    claims.push_back({cat(model, ": log-log slope in ", sweep.axis, " below the theorems' exponent ",
                          shown_number(sweep.exponent), ", an upper bound"),
                      shown_number(slope), slope <= sweep.exponent});
  }
  if (sweep.models.size() == 2 && sweep.models[0] == "CNN") claims.push_back(fewer_than_cnn_claim(table, sweep, run));
  return claims;
}

Figure sweep_figure(const SampleSweep& sweep) {
  Figure figure;
  figure.name = "pmoe/t11_" + sweep.axis;
  figure.title = cat("samples for ", 100 * kTarget, " % accuracy against ", sweep.title, " (theorems 4.2, 4.3, 4.5)");
  figure.needs = "nothing";
  figure.duration = "smoke 5 s, small 1 min, paper 5 min, on 2 cores";
  figure.axes = {"model", sweep.axis};
  figure.measures = {{"samples", "smallest number of samples with which half of the trials reach the target", 0}};
  figure.jobs = [sweep](const FigureRun& run) { return sweep_jobs(sweep, run); };
  figure.measure = [axis = sweep.axis](const Json& settings, const FigureRun& run) {
    const auto model = settings.at("model").get<std::string>();
    const auto value = settings.at(axis).get<double>();
    const auto found =
        smallest_size(sizes_of(run), settings.at("trials").get<int64_t>(), [&](int64_t samples, int64_t trial) {
          return reaches_target(model, axis, value, samples, static_cast<uint64_t>(trial));
        });
    return found ? Json{{"samples", *found}} : Json{{"samples", nullptr}};
  };
  figure.claims = [sweep](const ResultTable& table, const FigureRun& run) { return sweep_claims(table, sweep, run); };
  FigureChart chart;
  chart.x = sweep.axis;
  chart.y = "samples";
  chart.series = "model";
  chart.logarithmic_y = true;
  chart.logarithmic_x = sweep.exponent > 0;
  figure.charts = {chart};
  figure.notes = {
      "EASY profile except for the varied property; l = 2 and k = 8 unless varied; 40 neurons, learning rate 1, "
      "batches of 20, trained until an epoch has no training error, at most 150 epochs. Every trial has its own data, "
      "routers and filters. The result is the first of the sizes 4, 6, 8, 12, ... with which at least half of the "
      "trials reach the target.",
      "The theorems are sufficient conditions: only the order can be compared, their exponents are upper bounds."};
  return figure;
}

}  // namespace

std::vector<Figure> sample_figures() {
  std::vector<Figure> figures;
  for (const SampleSweep& sweep : sample_sweeps()) figures.push_back(sweep_figure(sweep));
  return figures;
}

}  // namespace sparsight::pmoe
