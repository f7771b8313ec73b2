#include <algorithm>

#include "sparsight/core/error.h"
#include "sparsight/papers/pmoe/figures/pattern_runs.h"
#include "sparsight/papers/pmoe/figures/routing_monitor.h"
#include "sparsight/papers/pmoe/figures/theory_figures.h"
#include "sparsight/reproduce/figure_claims.h"
#include "sparsight/reproduce/figure_parts.h"

namespace sparsight::pmoe {
namespace {

constexpr double kStableShare = 0.95;  // fraction of a class's samples
constexpr int64_t kPatches = 2;

struct AssumptionOptions : PatternOptions {
  std::vector<int64_t> epochs;
  double lr = PatternTraining().lr;
  int64_t batch = PatternTraining().batch;
  void declare(OptionSet& set) {
    PatternOptions::declare(set);
    set.real("lr", &lr, {0, 1e6}, "learning rate");
    set.integer("batch", &batch, {1, 1000000}, "samples per step");
    set.integers("epochs", &epochs, {0, 100000}, "epochs after which routing is measured, ascending");
  }
};

AssumptionOptions assumption_options(Scale scale) {
  return {{{by_scale<int64_t>(scale, 1, 5, 10)}, 200},
          by_scale<std::vector<int64_t>>(scale, {0, 2, 8}, {0, 1, 2, 4, 8, 16, 30}, {0, 1, 2, 4, 8, 16, 30, 60, 100})};
}

std::vector<Json> assumption_jobs(const FigureRun& run) {
  const AssumptionOptions options = chosen(assumption_options, run);
  std::vector<Json> jobs;
  for (const int64_t label : {0, 1})
    for (const int64_t epoch : options.epochs)
      jobs.push_back({{"class", label},
                      {"epoch", epoch},
                      {"samples", options.samples},
                      {"lr", options.lr},
                      {"batch", options.batch}});
  return with_seeds(jobs, options.repeats);
}

Json assumption_measure(const Json& settings, const FigureRun&) {
  const auto seed = settings.at("seed").get<uint64_t>();
  const auto label = settings.at("class").get<size_t>();
  const auto epochs = settings.at("epoch").get<int64_t>();
  const PatternModel model(easy_patterns(seed));
  const PatchSet train = sample_set(model, "train", settings.at("samples").get<int64_t>()),
                 test = sample_set(model, "test", 500);
  PatternRun run = joint_run(8, kPatches);
  run.training.lr = settings.at("lr");
  run.training.batch = settings.at("batch");
  const TwoLayerSetting setting = pattern_setting(run, train);
  const std::shared_ptr<PatchCnn> net = make_two_layer(setting, train, {seed, seed});
  PatchSgd sgd(net, train, setting.sgd, seed);
  std::vector<RoutingMoment> moments = {routing_moment(*net, test, 0)};
  for (int64_t epoch = 1; epoch <= epochs; ++epoch) {
    sgd.train_epoch();
    moments.push_back(routing_moment(*net, test, epoch));
  }
  const std::optional<int64_t> epoch = stable_from(moments, kStableShare);
  const RoutingMoment& last = moments.back();
  const bool found = last.share[label] > 0;
  constexpr double kRounding = 1e-6;
  SPARSIGHT_CHECK(!found || last.smallest_gate[label] >= 1.0 / kPatches - kRounding);  // the largest of kPatches gates
  return Json{{"share", 100 * last.share[label]},
              {"test_samples", (test.labels == static_cast<int64_t>(label)).sum().item<int64_t>()},
              {"gate", found ? Json(last.smallest_gate[label]) : Json()},
              {"stable_from", epoch ? Json(*epoch) : Json()},
              {"expert", last.expert[label]}};
}

std::vector<Claim> assumption_claims(const ResultTable& table, const FigureRun&) {
  const Json last = table.axis_values("epoch").back();
  return {
      all_at_least(table,
                   cat("for each class, some expert gives the pattern its largest gate in at least 95 % of samples, "
                       "after ",
                       shown(last), " epochs"),
                   "share", 100 * kStableShare, {{"epoch", last}})};
}

}  // namespace

Figure assumption_figure() {
  Figure figure;
  figure.name = "pmoe/t9";
  figure.title = "joint training satisfies assumption 4.4 from some epoch on, EASY profile";
  figure.needs = "nothing";
  figure.duration = "smoke 2 s, small 30 s, paper 4 min, on 2 cores";
  figure.axes = {"class", "epoch"};
  figure.measures = {
      {"share", "samples whose pattern gets the best expert's largest gate (%)", 1, {"test_samples", true}},
      {"gate", "minimum gate of these patterns", 3},
      {"stable_from", "epoch from which both classes stay at 95 % or more", 1}};
  figure.settings = make_settings(assumption_options);
  figure.jobs = assumption_jobs;
  figure.measure = assumption_measure;
  figure.claims = assumption_claims;
  FigureChart chart;
  chart.x = "epoch";
  chart.y = "share";
  chart.series = "class";
  chart.levels = {{"95 %", 95.0}};
  figure.charts = {chart};
  figure.notes = {
      "Joint training, k = 8, l = 2, 40 neurons. trials.jsonl names the expert of each class. Its gate is the largest "
      "of "
      "l = 2, so at least 1/2; a job in which it is not fails.",
      "Differs from the paper: assumption 4.4 is about all samples; here 95 % of the test samples are enough."};
  return figure;
}

}  // namespace sparsight::pmoe
