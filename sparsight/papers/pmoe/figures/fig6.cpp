// Figure 6: joint training against the number of experts.
#include <nlohmann/json.hpp>

#include "sparsight/papers/pmoe/figures/figures.h"
#include "sparsight/papers/pmoe/figures/joint_sweep.h"
#include "sparsight/reproduce/figure_parts.h"

namespace sparsight::pmoe {
namespace {

JointSweep fig6_sweep(Scale scale) {
  if (scale == Scale::smoke) return {"experts", {4, 8}, {100}, 0.25};
  if (scale == Scale::small) return {"experts", {4, 8, 20}, {300, 500}, 0.25};
  return {"experts", {4, 8, 12, 16, 20}, {300, 400, 500}, 0.25};
}

std::vector<Json> fig6_paper() {
  const JointSweep all = fig6_sweep(Scale::paper);
  const std::vector<std::vector<double>> accuracy = {
      {95.56, 95.46, 95.45, 95.43, 95.24}, {95.26, 95.92, 96.19, 96.13, 95.95}, {95.93, 96.37, 96.40, 96.43, 96.42}};
  std::vector<Json> rows;
  for (size_t i = 0; i < all.samples.size(); ++i)
    for (size_t j = 0; j < all.values.size(); ++j)
      rows.push_back(joint_row(all, all.values[j], all.samples[i], accuracy[i][j]));
  rows.push_back({{"model", "cnn"}, {"experts", 1}, {"samples", 1000}, {"accuracy", 93.4}});
  return rows;
}

}  // namespace

Figure fig6() {
  Figure figure;
  figure.name = "pmoe/fig6";
  figure.title = "accuracy against the number of experts, joint training";
  figure.needs = "MNIST; falls back to glyphs";
  figure.duration = "smoke 2 s, small 20 s, paper 2 min, on 2 cores";
  figure.axes = {"model", "experts", "samples"};
  figure.measures = accuracy_measures();
  figure.synthetic = digits_substitute;
  figure.jobs = [](const FigureRun& run) { return joint_jobs(fig6_sweep(run.scale), run); };
  figure.measure = [](const Json& job, const FigureRun& run) { return accuracy_of(train_digit_job(job, run)); };
  figure.paper = fig6_paper();
  figure.claims = [](const ResultTable& table, const FigureRun& run) {
    const JointSweep all = fig6_sweep(run.scale);
    return judged({falls_slowly(table, all, 8), above_the_cnn(table, all)}, run);
  };
  figure.charts = {{.kind = FigureChart::Kind::line, .x = "experts", .y = "accuracy", .series = "samples"}};
  figure.notes = {
      "Six patches and five filters per expert and five trials; the paper states none of these for this figure.",
      "The point at one expert is the CNN (40 filters on all patches) with 1000 samples.",
      "The theory predicts the trend A - c k^(1/4)."};
  return figure;
}

}  // namespace sparsight::pmoe
