#include "sparsight/papers/pmoe/figures/large_gradients.h"
#include "sparsight/papers/pmoe/figures/theory_figures.h"
#include "sparsight/papers/pmoe/theory/pattern_sweeps.h"
#include "sparsight/reproduce/figure_parts.h"

namespace sparsight::pmoe {

Figure large_gradients_figure() {
  Figure figure;
  figure.name = "pmoe/t7";
  figure.title = "fraction of neurons with a large expected gradient (lemmas G.2, G.3, H.2, H.3, I.2, I.3)";
  figure.needs = "nothing";
  figure.duration = "smoke 2 s, small 20 s, paper 2 min, on 2 cores";
  figure.axes = {"model", "sets"};
  figure.measures = {{"share", "neurons with a gradient of at least v / (l p sqrt(delta)) (%)", 1},
                     {"gamma", "gamma = 1 / (p sqrt(delta)) (%)", 1},
                     {"threshold", "v / (l p sqrt(delta))", 5}};
  figure.jobs = [](const FigureRun& run) {
    std::vector<Json> jobs;
    for (const char* model : {"separate, l = 2", "separate, l = 8", "joint, k = 2, l = 4", "CNN"})
      for (const int64_t sets : {4, 8, 16, 32})
        jobs.push_back({{"model", model}, {"sets", sets}, {"samples", by_scale<int64_t>(run, 500, 2000, 4000)}});
    return with_seeds(jobs, by_scale<int64_t>(run, 1, 3, 10));
  };
  figure.measure = [](const Json& settings, const FigureRun&) {
    const auto name = settings.at("model").get<std::string>();
    const auto seed = settings.at("seed").get<uint64_t>();
    PatternRun run = name == "CNN"                   ? cnn_run()
                     : name == "joint, k = 2, l = 4" ? joint_run(2, 4)
                     : name == "separate, l = 8"     ? separate_run(8)
                                                     : separate_run(2);
    run.filters *= 10;  // a fraction of 20 neurons would be coarse
    PatternSweep sweep;
    sweep.sets = settings.at("sets").get<int64_t>();
    const PatternModel model(swept_patterns(sweep, seed));
    const LargeGradients found =
        large_gradients(run, model, sample_set(model, "train", settings.at("samples").get<int64_t>()), seed);
    return Json{{"share", 100 * found.share}, {"gamma", 100 * found.gamma}, {"threshold", found.threshold}};
  };
  figure.claims = [](const ResultTable& table, const FigureRun&) {
    Claim claim{"at least a fraction gamma of each expert's neurons has such a gradient (with constant 1)", "",
                std::nullopt};
    double minimum = 1e9;
    for (const ResultRow& row : table.rows)
      if (const auto share = table.mean(row.settings, "share"), gamma = table.mean(row.settings, "gamma");
          share && gamma)
        minimum = std::min(minimum, *share / *gamma);
    if (minimum < 1e9) {
      claim.measured = "minimum fraction: " + shown_number(minimum) + " gamma";
      claim.holds = minimum >= 1;
    }
    return std::vector<Claim>{claim};
  };
  FigureChart chart;
  chart.x = "sets";
  chart.y = "share";
  chart.series = "model";
  chart.logarithmic_x = true;
  figure.charts = {chart};
  figure.notes = {
      "Measured at initialisation, where the gradient equals the lemmas' pseudo-gradient. The expert with the smallest "
      "fraction counts. With joint training, experts that never see a pattern are left out.",
      "Differs from the paper: 400 neurons, fewer than the lemmas require (l² p³ delta^(3/2) / v² for separate "
      "training)."};
  return figure;
}

}  // namespace sparsight::pmoe
