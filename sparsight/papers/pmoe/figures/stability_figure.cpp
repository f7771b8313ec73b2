#include "sparsight/core/error.h"
#include "sparsight/papers/pmoe/figures/activation_stability.h"
#include "sparsight/papers/pmoe/figures/theory_figures.h"
#include "sparsight/reproduce/figure_parts.h"
#include "sparsight/reproduce/margins.h"

namespace sparsight::pmoe {
namespace {

struct StabilityOptions : PatternOptions {
  std::vector<double> taus = {0.001, 0.003, 0.01, 0.03};
  int64_t steps = 20;
  void declare(OptionSet& set) {
    PatternOptions::declare(set);
    set.floats("taus", &taus, {1e-9, 10}, "tau, in units of the initial standard deviation");
    set.integer("steps", &steps, {1, 100000}, "steps that satisfy U eta t <= tau, about");
  }
};

StabilityOptions stability_options(Scale scale) {
  return {{{by_scale<int64_t>(scale, 1, 3, 5)}, by_scale<int64_t>(scale, 50, 200, 1000)}};
}

std::vector<Claim> stability_claims(const ResultTable& table, const FigureRun&) {
  std::vector<Margin> margins;
  for (const ResultRow& row : table.rows)
    margins.push_back({[cell = row.settings](const SeedMeans& mean) -> std::optional<double> {
                         const auto covered = mean(cell, "covered"), predicted = mean(cell, "predicted");
                         return covered && predicted ? std::optional(*covered - *predicted) : std::nullopt;
                       },
                       cat(row.settings.at("model").get<std::string>(), ", tau ", shown(row.settings.at("tau")))});
  return {every_trial_at_most(table, "no covered neuron changes a sign while U eta t <= tau", "violations", 0),
          judge(table, "at least 1 - 2 e tau l / sigma of the pairs are covered (n for l without frozen routers)",
                margins, {.ties = true, .unit = "points above the bound"})};
}

}  // namespace

Figure activation_stability_figure() {
  Figure figure;
  figure.name = "pmoe/t6";
  figure.title = "neurons keep their activation signs while they move little (lemmas G.1, H.1, I.1), EASY profile";
  figure.needs = "nothing";
  figure.duration = "smoke 2 s, small 20 s, paper 3 min, on 2 cores";
  figure.axes = {"model", "tau"};
  figure.measures = {{"covered", "covered (sample, neuron) pairs (%)", 1},
                     {"predicted", "lower bound of the lemma (%)", 1},
                     {"violations", "covered pairs in which a sign changed", 0},
                     {"changed", "other pairs in which a sign changed (%)", 1},
                     {"move", "largest move of a neuron, in units of U eta t", 4}};
  figure.settings = make_settings(stability_options);
  figure.jobs = [](const FigureRun& run) {
    const StabilityOptions options = chosen(stability_options, run);
    std::vector<Json> jobs;
    for (const char* model : {"separate, l = 2", "separate, l = 8", "joint, k = 8, l = 2", "CNN"})
      for (const double tau : options.taus)
        jobs.push_back({{"model", model}, {"tau", tau}, {"samples", options.samples}, {"steps", options.steps}});
    return with_seeds(jobs, options.repeats);
  };
  figure.measure = [](const Json& settings, const FigureRun&) {
    const auto model = settings.at("model").get<std::string>();
    const auto seed = settings.at("seed").get<uint64_t>();
    PatternRun run = model == "CNN"                   ? cnn_run()
                     : model == "joint, k = 8, l = 2" ? joint_run(8, 2)
                     : model == "separate, l = 8"     ? separate_run(8)
                                                      : separate_run(2);
    const PatternModel data(easy_patterns(seed));
    const PatchSet train = sample_set(data, "train", settings.at("samples").get<int64_t>());
    const ActivationStability found =
        activation_stability(run, train, settings.at("tau").get<double>(), settings.at("steps").get<int64_t>(), seed);
    return Json{{"covered", 100 * found.covered},
                {"predicted", 100 * found.predicted},
                {"violations", found.violations},
                {"changed", 100 * found.changed},
                {"move", found.move}};
  };
  figure.claims = stability_claims;
  FigureChart chart;
  chart.x = "tau", chart.y = "covered", chart.series = "model";
  chart.logarithmic_x = true;
  figure.charts = {chart};
  figure.notes = {
      "tau is in units of the initial standard deviation sigma = 1/sqrt(m). Steps are full-batch; the learning rate is "
      "chosen so that U eta t <= tau for about 20 steps."};
  return figure;
}

}  // namespace sparsight::pmoe
