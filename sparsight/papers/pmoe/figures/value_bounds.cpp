#include <algorithm>
#include <cmath>

#include "sparsight/core/error.h"
#include "sparsight/papers/pmoe/figures/pattern_runs.h"
#include "sparsight/papers/pmoe/figures/theory_figures.h"
#include "sparsight/papers/pmoe/two_layer/value_function.h"
#include "sparsight/reproduce/figure_parts.h"

namespace sparsight::pmoe {
namespace {

PatternRun run_named(const std::string& model) {
  if (model == "CNN") return cnn_run();
  if (model == "joint, k = 8, l = 2") return joint_run(8, 2);
  return separate_run(2);
}

struct ValueBoundsOptions {
  Repeats repeats;
  std::vector<int64_t> samples;
  int64_t test = 1000;
  PatternTraining training = {};
  void declare(OptionSet& set) {
    repeats.declare(set);
    training.declare(set);
    set.integers("samples", &samples, {2, 1000000}, "numbers of training samples");
    set.integer("test", &test, {2, 1000000}, "test samples");
  }
};

ValueBoundsOptions value_bounds_options(Scale scale) {
  return {{by_scale<int64_t>(scale, 1, 3, 10)},
          by_scale<std::vector<int64_t>>(scale, {20}, {20, 40, 80}, {20, 40, 80, 160, 320})};
}

}  // namespace

Figure value_bounds_figure() {
  Figure figure;
  figure.name = "pmoe/t5";
  figure.title = "the mean value function of a class bounds its error (appendix G), EASY profile";
  figure.needs = "nothing";
  figure.duration = "smoke 2 s, small 20 s, paper 3 min, on 2 cores";
  figure.axes = {"model", "samples"};
  figure.measures = {{"error", "error of the worse class (%)", 2},
                     {"twice", "2 v of that class (%)", 2},
                     {"root", "square root of v of that class (%)", 2}};
  figure.settings = make_settings(value_bounds_options);
  figure.jobs = [](const FigureRun& run) {
    const ValueBoundsOptions options = chosen(value_bounds_options, run);
    std::vector<Json> jobs;
    for (const char* model : {"separate, l = 2, one epoch", "separate, l = 2", "joint, k = 8, l = 2", "CNN"})
      for (const int64_t samples : options.samples)
        jobs.push_back({{"model", model},
                        {"samples", samples},
                        {"test", options.test},
                        {kPatternTraining, training_json(options.training)}});
    return with_seeds(jobs, options.repeats);
  };
  figure.measure = [](const Json& settings, const FigureRun&) {
    const auto seed = settings.at("seed").get<uint64_t>();
    const PatternModel model(easy_patterns(seed));
    const PatchSet train = sample_set(model, "train", settings.at("samples").get<int64_t>()),
                   test = sample_set(model, "test", settings.at("test").get<int64_t>());
    const auto name = settings.at("model").get<std::string>();
    PatternRun run = run_named(name);
    run.training = to_training(settings);
    if (name.ends_with("one epoch")) run.training.epochs = run.training.router_epochs = 1;
    const TwoLayerResult result = train_two_layer(pattern_setting(run, train), train, test, {seed, seed});
    const ValueFunction v =
        value_function(signed_outputs(*result.model, test), test.labels);  // also asserts the bounds
    const size_t worse = v.error[1] > v.error[0] ? 1 : 0;
    return Json{
        {"error", 100 * v.error[worse]}, {"twice", 200 * v.value[worse]}, {"root", 100 * std::sqrt(v.value[worse])}};
  };
  FigureChart chart;
  chart.x = "samples";
  chart.y = "error";
  chart.series = "model";
  chart.logarithmic_x = true;
  FigureChart bound = chart;
  bound.y = "twice";
  figure.charts = {chart, bound};
  figure.notes = {
      "v = 1 / (1 + exp(y f)). error <= 2 v for each class, and error <= sqrt(v) if "
      "sqrt(v) < 1/2, hold on any finite set: a job whose evaluation breaks one fails."};
  return figure;
}

}  // namespace sparsight::pmoe
