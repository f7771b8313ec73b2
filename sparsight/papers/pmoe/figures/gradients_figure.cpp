#include "sparsight/core/error.h"
#include "sparsight/papers/pmoe/figures/large_gradients.h"
#include "sparsight/papers/pmoe/figures/theory_figures.h"
#include "sparsight/papers/pmoe/theory/pattern_sweeps.h"
#include "sparsight/reproduce/figure_parts.h"
#include "sparsight/reproduce/margins.h"

namespace sparsight::pmoe {

namespace {

PatternOptions gradients_options(Scale scale) {
  return {{by_scale<int64_t>(scale, 1, 3, 10)}, by_scale<int64_t>(scale, 500, 2000, 4000)};
}

std::vector<Claim> gradients_claims(const ResultTable& table, const FigureRun&) {
  std::vector<Margin> margins;
  for (const ResultRow& row : table.rows)
    margins.push_back(
        {[cell = row.settings](const SeedMeans& mean) -> std::optional<double> {
           const auto share = mean(cell, "share"), gamma = mean(cell, "gamma");
           return share && gamma ? std::optional(*share / *gamma - 1) : std::nullopt;
         },
         cat(row.settings.at("model").get<std::string>(), " with ", shown(row.settings.at("sets")), " sets")});
  return {judge(table, "at least a fraction gamma of each expert's neurons has such a gradient (with constant 1)",
                margins, {.ties = true, .unit = "gamma more than gamma", .decimals = 2})};
}

}  // namespace

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
  figure.settings = make_settings(gradients_options);
  figure.jobs = [](const FigureRun& run) {
    const PatternOptions options = chosen(gradients_options, run);
    std::vector<Json> jobs;
    for (const char* model : {"separate, l = 2", "separate, l = 8", "joint, k = 2, l = 4", "CNN"})
      for (const int64_t sets : {4, 8, 16, 32})
        jobs.push_back({{"model", model}, {"sets", sets}, {"samples", options.samples}});
    return with_seeds(jobs, options.repeats);
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
  figure.claims = gradients_claims;
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
