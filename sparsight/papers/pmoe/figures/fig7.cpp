// Figure 7: joint training against the number of patches per expert.
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/papers/pmoe/figures/figures.h"
#include "sparsight/papers/pmoe/figures/joint_sweep.h"
#include "sparsight/reproduce/margins.h"

namespace sparsight::pmoe {
namespace {

JointOptions fig7_options(Scale scale) {
  JointOptions options{digit_options(scale, 5)};
  options.axis = "patches";
  options.power = 0.375;
  options.values = by_scale<std::vector<int64_t>>(scale, {2, 6}, {2, 6, 10, 16}, {2, 4, 6, 8, 10, 12, 14, 16});
  options.samples = by_scale<std::vector<int64_t>>(scale, {100}, {300, 800}, {300, 600, 800});
  options.cnn_samples = by_scale<int64_t>(scale, 100, 1000, 1000);
  return options;
}

std::vector<Json> fig7_paper() {
  return joint_paper(
      fig7_options(Scale::paper),
      {{{93.7, 1.7}, {94.8, 1.1}, {95.3, 0.8}, {95.2, 0.7}, {95.0, 0.8}, {95.0, 0.7}, {94.6, 0.9}, {94.5, 0.7}},
       {{95.3}, {96.2, 0.9}, {96.4, 0.6}, {96.3, 0.6}, {96.2, 0.6}, {96.1, 0.6}, {96.0, 0.5}, {96.0, 0.6}},
       {{95.5, 1.4}, {96.75, 0.5}, {96.9, 0.6}, {96.8, 0.5}, {96.7, 0.6}, {96.4, 0.7}, {96.6, 0.7}, {96.4, 0.6}}},
      95.2);
}

std::optional<double> accuracy_at(const SeedMeans& mean, int64_t patches, int64_t samples) {
  return mean({{"model", "joint"}, {"patches", patches}, {"samples", samples}}, "accuracy");
}

// The best value between the ends is above both ends.
Claim best_inside(const ResultTable& table, const JointOptions& options) {
  const std::string text = "the best number of patches lies inside the range, near l* = 6";
  if (options.values.size() < 3) return {text, "needs a value inside the range", {}};
  const std::vector<int64_t> inside(options.values.begin() + 1, options.values.end() - 1);
  std::vector<std::string> best_texts;
  std::vector<Margin> margins;
  for (const int64_t samples : options.samples) {
    const auto find_best = [samples](const SeedMeans& mean, const std::vector<int64_t>& values) {
      std::optional<std::pair<double, int64_t>> best;
      for (const int64_t patches : values) {
        const auto accuracy = accuracy_at(mean, patches, samples);
        if (!accuracy) return std::optional<std::pair<double, int64_t>>();
        if (!best || *accuracy > best->first) best = {*accuracy, patches};
      }
      return best;
    };
    const auto best = find_best(SeedMeans(table), options.values);
    if (!best) return {text, "not measured", {}};
    best_texts.push_back(cat(best->second, " with ", samples, " samples"));
    for (const int64_t end : {options.values.front(), options.values.back()})
      margins.push_back({[=](const SeedMeans& mean) -> std::optional<double> {
                           const auto middle = find_best(mean, inside);
                           const auto edge = accuracy_at(mean, end, samples);
                           return middle && edge ? std::optional(middle->first - *edge) : std::nullopt;
                         },
                         cat("against ", end, " with ", samples, " samples")});
  }
  MarginTest test{.decimals = 2};
  test.measured = "best: " + join(best_texts) + "; the least lead over an end";
  return judge(table, text, margins, test);
}

}  // namespace

Figure fig7() {
  Figure figure;
  figure.name = "pmoe/fig7";
  figure.title = "accuracy against the number of patches per expert, joint training";
  figure.needs = kDigitNeeds;
  figure.duration = "smoke 2 s, small 30 s, paper 3 min, on 2 cores";
  figure.axes = {"model", "patches", "samples"};
  figure.measures = accuracy_measures();
  figure.data = digit_data();
  figure.settings = make_settings(fig7_options);
  figure.jobs = [](const FigureRun& run) { return joint_jobs(chosen(fig7_options, run)); };
  figure.measure = [](const Json& job, const FigureRun& run) { return accuracy_json(train_digit_job(job, run)); };
  figure.paper = fig7_paper();
  figure.claims = [](const ResultTable& table, const FigureRun& run) -> std::vector<Claim> {
    const JointOptions options = chosen(fig7_options, run);
    return {best_inside(table, options), falls_slowly(table, options, 6), above_the_cnn(table, options)};
  };
  figure.charts = {{.kind = FigureChart::Kind::line,
                    .x = "patches",
                    .y = "accuracy",
                    .series = "samples",
                    .positions = {{"l* = 6", 6}},
                    .guide = FigureGuide{"A - c l^(3/8)", 0.375, 6}}};
  figure.notes = {"Eight experts of five filters; the paper does not state them for this figure.",
                  "The line across is the CNN with 1000 samples; its single expert sees all 16 patches.",
                  "The theory predicts the trend A - c l^(3/8), fitted here to our means from 6 patches on."};
  return figure;
}

}  // namespace sparsight::pmoe
