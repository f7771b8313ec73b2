#include "sparsight/core/error.h"
#include "sparsight/papers/pmoe/figures/pattern_runs.h"
#include "sparsight/papers/pmoe/figures/theory_figures.h"
#include "sparsight/papers/pmoe/theory/linear_classifier.h"
#include "sparsight/papers/pmoe/theory/pattern_sweeps.h"
#include "sparsight/reproduce/figure_claims.h"
#include "sparsight/reproduce/figure_parts.h"

namespace sparsight::pmoe {
namespace {

// In 8 dimensions no direction is orthogonal to all 32 irrelevant sets; in 64 dimensions many are orthogonal to all 8.
constexpr const char* kCrowded = "d = 8, p = 32";
constexpr const char* kRoomy = "d = 64, p = 8 (EASY)";

struct LinearOptions : PatternOptions {
  PatternTraining training = {};
  void declare(OptionSet& set) {
    PatternOptions::declare(set);
    training.declare(set);
  }
};

LinearOptions linear_options(Scale scale) {
  return {{{by_scale<int64_t>(scale, 1, 2, 5)}, by_scale<int64_t>(scale, 1200, 2000, 4000)}};
}

constexpr int64_t kLinearTest = 1000;  // test samples

Json linear_measure(const Json& settings, const FigureRun&) {
  const auto seed = settings.at("seed").get<uint64_t>();
  PatternSweep sweep;
  if (settings.at("data") == kCrowded) sweep.width = 8, sweep.sets = 32;
  const PatternModel model(swept_patterns(sweep, seed));
  const auto samples = settings.at("samples").get<int64_t>();
  if (settings.at("model") == "linear") {
    const LinearClassifier linear = train_linear(model.sample("train", samples), 30);
    const PatternSamples test = model.sample("test", kLinearTest);
    const at::Tensor right = (linear_outputs(linear, test) > 0) == (test.labels == 1);
    return Json{{"training_error", 100 * linear.training_error},
                {"test", kLinearTest},
                {"accuracy", 100 * right.to(at::kDouble).mean().item<double>()}};
  }
  const PatchSet train = sample_set(model, "train", samples), test = sample_set(model, "test", kLinearTest);
  PatternRun run = separate_run(2);
  run.training = to_training(settings);
  const TwoLayerResult result = train_two_layer(pattern_setting(run, train), train, test, {seed, seed});
  const double training = patch_accuracy(patch_outputs(*result.model, train), train.labels);
  return Json{{"training_error", 100 * (1 - training)}, {"test", kLinearTest}, {"accuracy", 100 * result.accuracy}};
}

}  // namespace

Figure linear_classifier_figure() {
  Figure figure;
  figure.name = "pmoe/t10";
  figure.title = "a linear classifier fails where patch routing succeeds (appendix K.1)";
  figure.needs = "nothing";
  figure.duration = "smoke 5 s, small 40 s, paper 3 min, on 2 cores";
  figure.axes = {"data", "model"};
  figure.measures = {{"training_error", "training error (%)", 2}, {"accuracy", "test accuracy (%)", 1, {"test", true}}};
  figure.settings = make_settings(linear_options);
  figure.jobs = [](const FigureRun& run) {
    const LinearOptions options = chosen(linear_options, run);
    std::vector<Json> jobs;
    for (const char* data : {kCrowded, kRoomy}) {
      if (run.scale == Scale::smoke && data == kRoomy) continue;
      for (const char* model : {"linear", "separate, l = 2"})
        jobs.push_back({{"data", data},
                        {"model", model},
                        {"samples", options.samples},
                        {kPatternTraining, training_json(options.training)}});
    }
    return with_seeds(jobs, options.repeats);
  };
  figure.measure = linear_measure;
  figure.claims = [](const ResultTable& table, const FigureRun&) {
    return std::vector<Claim>{
        all_at_least(table, "with more sets than dimensions the linear classifier does not fit the training set",
                     "training_error", 0.5, {{"data", kCrowded}, {"model", "linear"}}),
        all_at_most(table, "pMoE fits that training set", "training_error", 0.1,
                    {{"data", kCrowded}, {"model", "separate, l = 2"}})};
  };
  FigureChart chart;
  chart.kind = FigureChart::Kind::bars;
  chart.x = "data";
  chart.y = "accuracy";
  chart.series = "model";
  figure.charts = {chart};
  figure.notes = {
      "The linear classifier is logistic regression on the n d concatenated values, trained to convergence (Newton's "
      "method).",
      "Differs from the paper: if the irrelevant sets leave directions free (p + 2 < d and narrow sets, as in EASY), a "
      "linear classifier can ignore all of them and separates the classes. Appendix K.1 needs more than the "
      "distribution's own constraints."};
  return figure;
}

}  // namespace sparsight::pmoe
