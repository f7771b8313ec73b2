#include "sparsight/core/error.h"
#include "sparsight/papers/pmoe/figures/activation_stability.h"
#include "sparsight/papers/pmoe/figures/theory_figures.h"
#include "sparsight/reproduce/figure_claims.h"
#include "sparsight/reproduce/figure_parts.h"

namespace sparsight::pmoe {

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
  figure.jobs = [](const FigureRun& run) {
    std::vector<Json> jobs;
    for (const char* model : {"separate, l = 2", "separate, l = 8", "joint, k = 8, l = 2", "CNN"})
      for (const double tau : {0.001, 0.003, 0.01, 0.03})
        jobs.push_back({{"model", model}, {"tau", tau}, {"samples", by_scale<int64_t>(run, 50, 200, 1000)}});
    return with_seeds(jobs, by_scale<int64_t>(run, 1, 3, 5));
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
    const ActivationStability found = activation_stability(run, train, settings.at("tau").get<double>(), 20, seed);
    return Json{{"covered", 100 * found.covered},
                {"predicted", 100 * found.predicted},
                {"violations", found.violations},
                {"changed", 100 * found.changed},
                {"move", found.move}};
  };
  figure.claims = [](const ResultTable& table, const FigureRun&) {
    Claim fraction{"at least 1 - 2 e tau l / sigma of the pairs are covered (n for l without frozen routers)", "",
                   true};
    double minimum = 1e9;
    for (const ResultRow& row : table.rows) {
      const auto covered = table.mean(row.settings, "covered"), predicted = table.mean(row.settings, "predicted");
      if (!covered || !predicted) continue;
      minimum = std::min(minimum, *covered - *predicted);
    }
    fraction.measured = cat("at least ", shown_number(minimum), " points above the bound");
    fraction.holds = minimum >= 0;
    return std::vector<Claim>{
        all_at_most(table, "no covered neuron changes a sign while U eta t <= tau", "violations", 0), fraction,
        all_at_most(table, "no neuron moves by more than U eta t (up to rounding in fp32)", "move", 1.001)};
  };
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
