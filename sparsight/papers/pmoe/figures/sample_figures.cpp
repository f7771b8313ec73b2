#include <algorithm>

#include "sparsight/core/error.h"
#include "sparsight/papers/pmoe/figures/pattern_runs.h"
#include "sparsight/papers/pmoe/figures/theory_figures.h"
#include "sparsight/papers/pmoe/theory/pattern_sweeps.h"
#include "sparsight/reproduce/figure_claims.h"
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

struct SampleOptions {
  Repeats repeats;
  std::vector<int64_t> sizes;
  std::vector<double> values;
  std::string axis;
  PatternTraining training = {};
  void declare(OptionSet& set) {
    repeats.declare(set);
    training.declare(set);
    set.integers("sizes", &sizes, {2, 1000000}, "numbers of samples to try, ascending");
    set.floats(axis, &values, {-1, 100000}, "values of the varied property");
  }
};

SampleOptions sample_options(Scale scale, const SampleSweep& sweep) {
  SampleOptions options{{by_scale<int64_t>(scale, 1, 7, 21)}, {16, 64, 256}, sweep.values, sweep.axis};
  if (scale == Scale::smoke)
    options.values.resize(2);
  else
    options.sizes = {4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512};
  return options;
}

bool reaches_target(const Json& settings, const std::string& axis, int64_t samples) {
  const auto model = settings.at("model").get<std::string>();
  const auto value = settings.at(axis).get<double>();
  const auto seed = settings.at("seed").get<uint64_t>();
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
  PatternRun run = model == "CNN" ? cnn_run() : model == "joint" ? joint_run(experts, taken) : separate_run(taken);
  run.training = to_training(settings);
  return train_two_layer(pattern_setting(run, train), train, test, {seed, seed}).accuracy >= kTarget;
}

std::vector<Json> sweep_jobs(const SampleSweep& sweep, const SampleOptions& options) {
  std::vector<Json> jobs;
  for (const std::string& model : sweep.models)
    for (const double value : options.values)
      jobs.push_back({{"model", model},
                      {sweep.axis, value},
                      {"sizes", options.sizes},
                      {kPatternTraining, training_json(options.training)}});
  return with_seeds(jobs, options.repeats);
}

// The mean over seeds; null unless most trials of the cell reach the target, as the others have no number.
Statistic mean_samples(const Json& cell) {
  return [cell](const SeedMeans& mean) -> std::optional<double> {
    for (const ResultRow& row : mean.table().rows)
      if (contains(row.settings, cell) && 2 * row.measured[0] <= std::ssize(row.trials)) return std::nullopt;
    return mean(cell, "samples");
  };
}

Statistic difference(const Statistic& more, const Statistic& less) {
  return [=](const SeedMeans& mean) -> std::optional<double> {
    const auto high = more(mean), low = less(mean);
    return high && low ? std::optional(*high - *low) : std::nullopt;
  };
}

Claim order_claim(const ResultTable& table, const std::string& model, const SampleSweep& sweep) {
  const std::string text = cat(model, ": ", sweep.claim);
  const auto cell = [&](const Json& value) { return Json{{"model", model}, {sweep.axis, value}}; };
  const std::vector<Json> values = table.axis_values(sweep.axis);
  std::vector<Margin> margins;
  for (size_t i = 0; i + 1 < values.size(); ++i)
    margins.push_back({difference(mean_samples(cell(values[i + 1])), mean_samples(cell(values[i]))),
                       cat("from ", shown(values[i]), " to ", shown(values[i + 1]))});
  MarginTest test{.ties = true, .unit = "samples"};
  const auto points = mean_curve(SeedMeans(table), sweep.axis, "samples", {{"model", model}});
  for (const auto& [x, samples] : points)
    test.measured += cat(test.measured.empty() ? "" : ", ", shown_number(samples, 3), " at ", shown_number(x));
  if (points.size() < 2) return {text, "not reached with most samples", std::nullopt};
  if (sweep.exponent > 0)
    test.measured += cat("; log-log slope ", shown_number(log_log_slope(points), 2), " (the theorems' upper bound has ",
                         shown_number(sweep.exponent), ")");
  test.measured += "; the least step";
  return judge(table, text, margins, test);
}

Claim fewer_than_cnn_claim(const ResultTable& table, const SampleSweep& sweep) {
  std::vector<Margin> margins;
  for (const Json& value : table.axis_values(sweep.axis))
    margins.push_back({difference(mean_samples({{"model", "CNN"}, {sweep.axis, value}}),
                                  mean_samples({{"model", "separate"}, {sweep.axis, value}})),
                       cat("at ", shown(value))});
  return judge(table, "separate training (l = 2) needs fewer samples than the CNN", margins, {.unit = "samples"});
}

std::vector<Claim> sweep_claims(const ResultTable& table, const SampleSweep& sweep) {
  std::vector<Claim> claims;
  for (const std::string& model : sweep.models) claims.push_back(order_claim(table, model, sweep));
  if (sweep.models.size() == 2 && sweep.models[0] == "CNN") claims.push_back(fewer_than_cnn_claim(table, sweep));
  return claims;
}

Figure sweep_figure(const SampleSweep& sweep) {
  Figure figure;
  figure.name = "pmoe/t11_" + sweep.axis;
  figure.title = cat("samples for ", 100 * kTarget, " % accuracy against ", sweep.title, " (theorems 4.2, 4.3, 4.5)");
  figure.needs = "nothing";
  figure.duration = "smoke 5 s, small 1 min, paper 5 min, on 2 cores";
  figure.axes = {"model", sweep.axis};
  figure.measures = {{"samples", "smallest number of samples that reaches the target", 0}};
  const auto defaults = [sweep](Scale scale) { return sample_options(scale, sweep); };
  figure.settings = make_settings(defaults);
  figure.jobs = [defaults, sweep](const FigureRun& run) { return sweep_jobs(sweep, chosen(defaults, run)); };
  figure.measure = [axis = sweep.axis](const Json& settings, const FigureRun&) {
    const auto found = smallest_size(settings.at("sizes").get<std::vector<int64_t>>(),
                                     [&](int64_t samples) { return reaches_target(settings, axis, samples); });
    return Json{{"samples", found ? Json(*found) : Json()}};
  };
  figure.claims = [sweep](const ResultTable& table, const FigureRun&) { return sweep_claims(table, sweep); };
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
      "routers and filters. Its result is the first of the sizes 4, 6, 8, 12, ... with which it reaches the target.",
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
