#include <algorithm>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/papers/gmoe/figures/theory_figures.h"
#include "sparsight/papers/gmoe/theory/branch_program.h"
#include "sparsight/reproduce/figure_parts.h"
#include "sparsight/reproduce/figure_settings.h"
#include "sparsight/reproduce/margins.h"

namespace sparsight::gmoe {
namespace {

struct BranchOptions {
  Repeats repeats;
  std::vector<int64_t> experts = {1, 2, 4, 8, 16}, samples = {16000, 4000};
  int64_t steps = 4000;
  void declare(OptionSet& set) {
    repeats.declare(set);
    set.integers("experts", &experts, {1, 1024}, "numbers of experts (N)");
    set.integers("samples", &samples, {1, 10000000}, "numbers of training samples");
    set.integer("steps", &steps, {1, 10000000}, "steps of training, of 128 samples");
  }
};

BranchOptions branch_options(Scale scale) {
  BranchOptions options;
  options.repeats.trials = by_scale<int64_t>(scale, 1, 6, 20);
  if (scale == Scale::smoke) options.samples = {200}, options.steps = 5;
  return options;
}

std::vector<Json> branch_jobs(const FigureRun& run) {
  const BranchOptions options = chosen(branch_options, run);
  std::vector<Json> jobs;
  for (const int64_t samples : options.samples)
    for (const int64_t experts : options.experts) jobs.push_back({{"samples", samples}, {"experts", experts}});
  return with_seeds(jobs, options.repeats);
}

Json measure_branches(const Json& job, const FigureRun& run) {
  const BranchErrors errors = train_on_branches({.experts = job.at("experts"),
                                                 .samples = job.at("samples"),
                                                 .steps = chosen(branch_options, run).steps,
                                                 .seed = job.at("seed")});
  return {{"in_distribution", errors.in_distribution}, {"shifted", errors.shifted}};
}

// The error with `experts` minus the smallest one with numbers of experts around that of branches.
Statistic above_best(const Json& samples, int64_t experts) {
  return [=](const SeedMeans& mean) -> std::optional<double> {
    std::optional<double> best;
    for (const int64_t number : {2, 4, 8}) {
      const auto error = mean({{"samples", samples}, {"experts", number}}, "shifted");
      if (error && (!best || *error < *best)) best = error;
    }
    const auto error = mean({{"samples", samples}, {"experts", experts}}, "shifted");
    if (!best || !error) return std::nullopt;
    return *error - *best;
  };
}

std::vector<Claim> branch_claims(const ResultTable& table, const FigureRun&) {
  std::vector<Claim> claims;
  for (const Json& samples : table.axis_values("samples"))
    for (const int64_t experts : {1, 16})
      claims.push_back(judge(table,
                             cat("with ", shown(samples),
                                 " samples, the best of 2, 4, 8 experts has a smaller error "
                                 "under the shift than ",
                                 experts),
                             {{above_best(samples, experts), {}}}, {.unit = "", .decimals = 3}));
  return claims;
}

}  // namespace

Figure branch_experts_figure() {
  Figure figure;
  figure.name = "gmoe/t2";
  figure.title = "theorem 2: a program of four branches, learned by an MoE layer with N experts";
  figure.needs = "nothing";
  figure.duration = "smoke 1 s, small 5 min, paper 20 min, on 2 cores";
  figure.axes = {"samples", "experts"};
  figure.measures = {{"shifted", "error under the shift", 3}, {"in_distribution", "error as in training", 3}};
  figure.settings = make_settings(branch_options);
  figure.jobs = branch_jobs;
  figure.measure = measure_branches;
  figure.claims = branch_claims;
  FigureChart chart;
  chart.x = "experts";
  chart.y = "shifted";
  chart.series = "samples";
  chart.logarithmic_x = true;
  figure.charts = {chart};
  figure.notes = {
      "x in R^16; the quartile of a projection of x chooses one of four functions 2 tanh(a x) + b x. Training has the "
      "branches with shares of 0.7, 0.1, 0.1, 0.1, the shifted test with equal ones. Experts 16 -> 16 -> 1 (ReLU), one "
      "per sample, linear router with bias, noise 1/N, importance and load losses; Adam, lr 3e-3. Errors: mean squared "
      "error over the variance of the targets.",
      "With few samples the left side of the U goes: data per expert run out.",
      "The paper's own experiment is in an appendix that was not available; this one is of our design."};
  return figure;
}

}  // namespace sparsight::gmoe
