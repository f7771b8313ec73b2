#include "sparsight/analysis/patch_routing_report.h"
#include "sparsight/core/error.h"
#include "sparsight/papers/pmoe/figures/pattern_runs.h"
#include "sparsight/papers/pmoe/figures/theory_figures.h"
#include "sparsight/papers/pmoe/theory/pattern_sweeps.h"
#include "sparsight/reproduce/figure_claims.h"
#include "sparsight/reproduce/figure_parts.h"

namespace sparsight::pmoe {
namespace {

// Fraction of the patches at `position` that some expert takes, averaged over both classes (%).
double routed(PatchCnn& model, const PatchSet& data, const at::Tensor& position) {
  const Routing routing = route_patches(model, data, 0, data.size());
  const at::Tensor relevant = at::arange(data.patches, at::kLong).unsqueeze(0) == position.unsqueeze(1);
  const PatchRoutingReport report = patch_routing_report(routing, data.labels, relevant, 2);
  return 50 * (report.kept_share(0).value_or(0) + report.kept_share(1).value_or(0));
}

struct SpuriousOptions {
  Repeats repeats;
  std::vector<int64_t> samples;
  double correlation = 0.9;
  PatternTraining training = {};
  void declare(OptionSet& set) {
    repeats.declare(set);
    training.declare(set);
    set.integers("samples", &samples, {2, 1000000}, "numbers of training samples");
    set.real("correlation", &correlation, {0, 1}, "share of training samples whose planted vector is the label's");
  }
};

SpuriousOptions spurious_options(Scale scale) {
  return {{by_scale<int64_t>(scale, 1, 5, 10)},
          by_scale<std::vector<int64_t>>(scale, {100}, {100, 400}, {100, 200, 400, 800})};
}

std::vector<Json> spurious_jobs(const FigureRun& run) {
  const SpuriousOptions options = chosen(spurious_options, run);
  std::vector<Json> jobs;
  for (const char* model : {"CNN", "separate, l = 1", "separate, l = 2", "joint, k = 8, l = 1", "joint, k = 8, l = 2"})
    for (const int64_t samples : options.samples)
      jobs.push_back({{"model", model},
                      {"samples", samples},
                      {"correlation", options.correlation},
                      {kPatternTraining, training_json(options.training)}});
  return with_seeds(jobs, options.repeats);
}

Json spurious_measure(const Json& settings, const FigureRun&) {
  const auto seed = settings.at("seed").get<uint64_t>();
  const auto share = settings.at("correlation").get<double>();
  const auto name = settings.at("model").get<std::string>();
  const PatternModel model(easy_patterns(seed));
  const auto planted = [&](const std::string& part, int64_t count, double with_label) {
    return plant_spurious(model.sample(part, count), model.patterns(), with_label, part, seed);
  };
  constexpr int64_t kTest = 1000;
  const PlantedSamples broken = planted("test", kTest, 0.5);
  const PatchSet train = patch_set(planted("train", settings.at("samples").get<int64_t>(), share).samples, 2),
                 intact_set = patch_set(planted("intact", kTest, share).samples, 2),
                 broken_set = patch_set(broken.samples, 2);
  const int64_t taken = name.ends_with("1") ? 1 : 2;
  PatternRun run = name == "CNN" ? cnn_run() : name.starts_with("joint") ? joint_run(8, taken) : separate_run(taken);
  run.training = to_training(settings);
  const TwoLayerResult result = train_two_layer(pattern_setting(run, train), train, intact_set, {seed, seed});
  Json found = {{"intact", 100 * result.accuracy},
                {"broken", 100 * patch_accuracy(patch_outputs(*result.model, broken_set), broken_set.labels)},
                {"test_samples", kTest}};
  found["planted"] = name == "CNN" ? 100.0 : routed(*result.model, broken_set, broken.planted);
  found["pattern"] = name == "CNN" ? 100.0 : routed(*result.model, broken_set, broken_set.position);
  return found;
}

std::vector<Claim> spurious_claims(const ResultTable& table, const FigureRun&) {
  std::vector<Claim> claims;
  for (const char* model : {"separate, l = 1", "separate, l = 2", "joint, k = 8, l = 1", "joint, k = 8, l = 2"})
    claims.push_back(above_everywhere(table, cat(model, ": at least as accurate as the CNN without the correlation"),
                                      {.ours = model, .theirs = "CNN", .measure = "broken"}, /*ties_count=*/true));
  return claims;
}

}  // namespace

Figure spurious_figure() {
  Figure figure;
  figure.name = "pmoe/spurious";
  figure.title = "a planted patch that correlates with the label in training but not in the test; EASY profile";
  figure.needs = "nothing";
  figure.duration = "smoke 2 s, small 30 s, paper 3 min, on 2 cores";
  figure.axes = {"model", "samples"};
  figure.measures = {{"intact", "test accuracy, correlation as in training (%)", 1, {"test_samples", true}},
                     {"broken", "test accuracy, no correlation (%)", 1, {"test_samples", true}},
                     {"planted", "planted patches that some expert takes (%)", 1},
                     {"pattern", "patterns that some expert takes (%)", 1}};
  figure.settings = make_settings(spurious_options);
  figure.jobs = spurious_jobs;
  figure.measure = spurious_measure;
  figure.claims = spurious_claims;
  FigureChart chart;
  chart.x = "samples";
  chart.y = "broken";
  chart.series = "model";
  chart.logarithmic_x = true;
  figure.charts = {chart};
  figure.notes = {
      "One irrelevant patch of each sample is replaced by one of two planted vectors, which are orthogonal to the "
      "patterns. It is the vector of the label in 90 % of the training samples and, without the correlation, in 50 % "
      "of the test samples."};
  return figure;
}

}  // namespace sparsight::pmoe
