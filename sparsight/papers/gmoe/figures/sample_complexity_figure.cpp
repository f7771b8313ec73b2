#include <algorithm>

#include <nlohmann/json.hpp>

#include "sparsight/core/interrupt.h"
#include "sparsight/core/random.h"
#include "sparsight/papers/gmoe/figures/theory_figures.h"
#include "sparsight/papers/gmoe/theory/sample_complexity.h"
#include "sparsight/reproduce/figure_claims.h"
#include "sparsight/reproduce/figure_parts.h"
#include "sparsight/reproduce/figure_settings.h"
#include "sparsight/reproduce/margins.h"

namespace sparsight::gmoe {
namespace {

struct ComplexityOptions {
  Repeats repeats;
  std::vector<int64_t> widths = {2, 4, 8, 16, 32, 64};
  int64_t searches = 200;
  double noise = 0.5, epsilon = 0.2, delta = 0.1;
  void declare(OptionSet& set) {
    repeats.declare(set);
    set.integers("widths", &widths, {1, 1024}, "dimensions of the input");
    set.integer("searches", &searches, {1, 100000}, "trainings for each number of samples");
    set.real("noise", &noise, {0, 100}, "standard deviation of the noise of a target");
    set.real("epsilon", &epsilon, {1e-9, 100}, "error that counts as success");
    set.real("delta", &delta, {0, 0.99}, "share of the trainings that may fail");
  }
};

ComplexityOptions complexity_options(Scale scale) {
  ComplexityOptions options;
  options.repeats.trials = by_scale<int64_t>(scale, 1, 5, 20);
  if (scale == Scale::smoke) options.widths = {2, 4}, options.searches = 5;
  return options;
}

std::vector<Json> complexity_jobs(const FigureRun& run) {
  const ComplexityOptions options = chosen(complexity_options, run);
  std::vector<Json> jobs;
  for (const int64_t width : options.widths) jobs.push_back({{"width", width}});
  return with_seeds(jobs, options.repeats);
}

Json measure_complexity(const Json& job, const FigureRun& run) {
  const ComplexityOptions options = chosen(complexity_options, run);
  const auto seed = job.at("seed").get<uint64_t>();
  const SampleComplexity found =
      sample_complexity({.trials = options.searches, .delta = options.delta}, [&](int64_t samples, int64_t trial) {
        const uint64_t own = hash_combine(seed, static_cast<uint64_t>(trial));
        return linear_target_error(job.at("width"), options.noise, samples, own) <= options.epsilon;
      });
  double fall = 0;
  for (size_t i = 1; i < found.curve.size(); ++i)
    fall = std::max(fall, found.curve[i - 1].share - found.curve[i].share);
  return {{"samples", found.samples ? Json(*found.samples) : Json()}, {"fall", 100 * fall}};
}

std::vector<Claim> complexity_claims(const ResultTable& table, const FigureRun&) {
  return {slope_within(table, "the sample complexity grows with the width to a power of 0.8 to 1.1", "width", "samples",
                       {0.8, 1.1}),
          every_trial_at_most(table, "more samples succeed at least as often, within three standard errors (15 points)",
                              "fall", 15)};
}

}  // namespace

Figure sample_complexity_figure() {
  Figure figure;
  figure.name = "gmoe/t4";
  figure.title = "the sample complexity of a linear target, measured";
  figure.needs = "nothing";
  figure.duration = "smoke 1 s, small 10 s, paper 1 min, on 2 cores";
  figure.axes = {"width"};
  figure.measures = {{"samples", "samples for an error of epsilon", 1},
                     {"fall", "largest fall of the share of successes (points)", 1}};
  figure.settings = make_settings(complexity_options);
  figure.jobs = complexity_jobs;
  figure.measure = measure_complexity;
  figure.claims = complexity_claims;
  FigureChart chart;
  chart.x = "width";
  chart.y = "samples";
  chart.logarithmic_x = chart.logarithmic_y = true;
  figure.charts = {chart};
  figure.notes = {
      "M(f, N; epsilon, delta) of the paper: the smallest number of samples with which a module learns a function to "
      "epsilon with probability 1 - delta; here least squares learns y = w x with noise 0.5 to an error of 0.2, in 90 "
      "% "
      "of 200 trainings. Numbers of samples are doubled until enough trainings succeed, then bisected. The expected "
      "squared error is noise^2 width / (samples - width - 1)."};
  return figure;
}

}  // namespace sparsight::gmoe
