// Figure 6: joint training against the number of experts.
#include <nlohmann/json.hpp>

#include "sparsight/papers/pmoe/figures/figures.h"
#include "sparsight/papers/pmoe/figures/joint_sweep.h"
#include "sparsight/reproduce/figure_parts.h"

namespace sparsight::pmoe {
namespace {

JointOptions fig6_options(Scale scale) {
  JointOptions options{digit_options(scale, 5)};
  options.values = by_scale<std::vector<int64_t>>(scale, {4, 8}, {4, 8, 20}, {4, 8, 12, 16, 20});
  options.samples = by_scale<std::vector<int64_t>>(scale, {100}, {300, 500}, {300, 400, 500});
  options.cnn_samples = by_scale<int64_t>(scale, 100, 1000, 1000);
  return options;
}

std::vector<Json> fig6_paper() {
  return joint_paper(fig6_options(Scale::paper),
                     {{{95.56}, {95.46, 0.6}, {95.45, 0.9}, {95.43, 0.5}, {95.24, 0.6}},
                      {{95.26, 1.6}, {95.92}, {96.19}, {96.13, 0.4}, {95.95, 0.6}},
                      {{95.93, 1.4}, {96.37, 0.6}, {96.40, 0.5}, {96.43, 0.5}, {96.42, 0.5}}},
                     93.4);
}

}  // namespace

Figure fig6() {
  Figure figure;
  figure.name = "pmoe/fig6";
  figure.title = "accuracy against the number of experts, joint training";
  figure.needs = kDigitNeeds;
  figure.duration = "smoke 2 s, small 20 s, paper 2 min, on 2 cores";
  figure.axes = {"model", "experts", "samples"};
  figure.measures = accuracy_measures();
  figure.data = digit_data();
  figure.settings = make_settings(fig6_options);
  figure.jobs = [](const FigureRun& run) { return joint_jobs(chosen(fig6_options, run)); };
  figure.measure = [](const Json& job, const FigureRun& run) { return accuracy_json(train_digit_job(job, run)); };
  figure.paper = fig6_paper();
  figure.claims = [](const ResultTable& table, const FigureRun& run) -> std::vector<Claim> {
    const JointOptions options = chosen(fig6_options, run);
    return {falls_slowly(table, options, 8), above_the_cnn(table, options)};
  };
  figure.charts = {{.kind = FigureChart::Kind::line,
                    .x = "experts",
                    .y = "accuracy",
                    .series = "samples",
                    .guide = FigureGuide{"A - c k^(1/4)", 0.25, 8}}};
  figure.notes = {
      "Six patches and five filters per expert and five trials; the paper states none of these for this figure.",
      "The line across is the CNN (40 filters on all patches) with 1000 samples, a row with one expert in the table.",
      "The theory predicts the trend A - c k^(1/4), fitted here to our means from 8 experts on."};
  return figure;
}

}  // namespace sparsight::pmoe
