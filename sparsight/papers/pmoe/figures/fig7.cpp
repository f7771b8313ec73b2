// Figure 7: joint training against the number of patches per expert.
#include <nlohmann/json.hpp>

#include "sparsight/papers/pmoe/figures/figures.h"
#include "sparsight/papers/pmoe/figures/joint_sweep.h"
#include "sparsight/reproduce/figure_parts.h"

namespace sparsight::pmoe {
namespace {

JointSweep fig7_sweep(Scale scale) {
  if (scale == Scale::smoke) return {"patches", {2, 6}, {100}, 0.375};
  if (scale == Scale::small) return {"patches", {2, 6, 10, 16}, {300, 800}, 0.375};
  return {"patches", {2, 4, 6, 8, 10, 12, 14, 16}, {300, 600, 800}, 0.375};
}

std::vector<Json> fig7_paper() {
  const JointSweep all = fig7_sweep(Scale::paper);
  const std::vector<std::vector<double>> accuracy = {{93.7, 94.8, 95.3, 95.2, 95.0, 95.0, 94.6, 94.5},
                                                     {95.3, 96.2, 96.4, 96.3, 96.2, 96.1, 96.0, 96.0},
                                                     {95.5, 96.75, 96.9, 96.8, 96.7, 96.4, 96.6, 96.4}};
  std::vector<Json> rows;
  for (size_t i = 0; i < all.samples.size(); ++i)
    for (size_t j = 0; j < all.values.size(); ++j)
      rows.push_back(joint_row(all, all.values[j], all.samples[i], accuracy[i][j]));
  rows.push_back({{"model", "cnn"}, {"patches", 16}, {"samples", 1000}, {"accuracy", 95.2}});
  return rows;
}

Claim best_inside(const ResultTable& table, const JointSweep& all) {
  Claim claim{"the best number of patches lies inside the range, near l* = 6", "", {}};
  bool inside = true;
  for (const int64_t samples : all.samples) {
    const auto best = best_value(table, all, samples);
    if (!best) {
      claim.measured = "not measured";
      return claim;
    }
    claim.measured += cat(claim.measured.empty() ? "" : ", ", *best, " with ", samples, " samples");
    inside = inside && *best != all.values.front() && *best != all.values.back();
  }
  claim.holds = inside;
  return claim;
}

}  // namespace

Figure fig7() {
  Figure figure;
  figure.name = "pmoe/fig7";
  figure.title = "accuracy against the number of patches per expert, joint training";
  figure.needs = "MNIST; falls back to glyphs";
  figure.duration = "smoke 2 s, small 30 s, paper 3 min, on 2 cores";
  figure.axes = {"model", "patches", "samples"};
  figure.measures = accuracy_measures();
  figure.synthetic = digits_substitute;
  figure.jobs = [](const FigureRun& run) { return joint_jobs(fig7_sweep(run.scale), run); };
  figure.measure = [](const Json& job, const FigureRun& run) { return accuracy_of(train_digit_job(job, run)); };
  figure.paper = fig7_paper();
  figure.claims = [](const ResultTable& table, const FigureRun& run) {
    const JointSweep all = fig7_sweep(run.scale);
    return judged({best_inside(table, all), falls_slowly(table, all, 6), above_the_cnn(table, all)}, run);
  };
  figure.charts = {{.kind = FigureChart::Kind::line, .x = "patches", .y = "accuracy", .series = "samples"}};
  figure.notes = {"Eight experts of five filters; the paper does not state them for this figure.",
                  "The CNN's row has 16 patches because its single expert sees all of them; it has 1000 samples.",
                  "The theory predicts the trend A - c l^(3/8)."};
  return figure;
}

}  // namespace sparsight::pmoe
