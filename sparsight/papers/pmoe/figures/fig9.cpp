// Figure 9: how often the best jointly trained expert of a class gives its largest gate to the cell that determines the
// label.
#include <nlohmann/json.hpp>

#include "sparsight/papers/pmoe/figures/digit_runs.h"
#include "sparsight/papers/pmoe/figures/figures.h"
#include "sparsight/papers/pmoe/figures/found_cells.h"
#include "sparsight/report/format.h"
#include "sparsight/reproduce/figure_parts.h"

namespace sparsight::pmoe {
namespace {

const std::vector<std::string> kFig9Keys = {"found_1", "found_0"};  // the paper's class 1 is the digit 1, class 2 the 0

std::vector<int64_t> fig9_sizes(const FigureRun& run) {
  if (run.scale == Scale::smoke) return {100};
  if (run.scale == Scale::small) return {100, 300, 1000};
  return {100, 200, 300, 400, 500, 600, 700, 800, 900, 1000};
}

std::vector<Json> fig9_jobs(const FigureRun& run) {
  std::vector<Json> jobs;
  for (const int64_t samples : fig9_sizes(run))
    for (int64_t trial = 0; trial < digit_scale(run, 5).trials; ++trial)
      jobs.push_back(
          digit_job({{"samples", samples}}, trial, "paper", two_layer_preset("paper", "joint", digit_shape()), run));
  return jobs;
}

Json fig9_measure(const Json& job, const FigureRun& run) {
  const DigitTrial trial = train_digit_job(job, run);
  const PatchRoutingReport report = found_cells(*trial.result.model, trial.test);
  const auto share = [&](int64_t label) {
    return 100 * report.largest_share(label, report.best_expert(label)).value_or(0);
  };
  return {{"found_1", share(1)}, {"found_0", share(0)}, {"accuracy", 100 * trial.result.accuracy}};
}

std::vector<Json> fig9_paper() {
  const std::vector<std::vector<double>> found = {{75.2, 57.9, 95.3, 92.3, 95.6, 95.1, 94.2, 94.8, 94.3, 94.9},
                                                  {87.8, 91.5, 90.4, 89.9, 90.3, 91.4, 90.5, 91.2, 91.0, 92.0}};
  std::vector<Json> rows;
  for (int64_t j = 0; j < 10; ++j)
    rows.push_back({{"samples", 100 * (j + 1)}, {kFig9Keys[0], found[0][j]}, {kFig9Keys[1], found[1][j]}});
  return rows;
}

Claim stays_high(const ResultTable& table, const std::string& key, const std::string& digit) {
  Claim claim{cat("from 300 samples on, the best expert finds the ", digit, " in at least 88 % of samples"),
              "not measured",
              {}};
  std::optional<double> minimum, maximum;
  for (const Json& samples : table.values_of("samples")) {
    const auto found = table.mean({{"samples", samples}}, key);
    if (!found || samples.get<int64_t>() < 300) continue;
    minimum = std::min(minimum.value_or(*found), *found);
    maximum = std::max(maximum.value_or(*found), *found);
  }
  if (!minimum) return claim;
  claim.measured = cat(fixed(*minimum, 1), " to ", fixed(*maximum, 1), " %");
  claim.holds = *minimum >= 88;
  return claim;
}

}  // namespace

Figure fig9() {
  Figure figure;
  figure.name = "pmoe/fig9";
  figure.title = "test samples whose label's cell gets the largest gate of the class's best expert, joint training";
  figure.needs = "MNIST; falls back to glyphs";
  figure.duration = "smoke 2 s, small 15 s, paper 1 min, on 2 cores";
  figure.axes = {"samples"};
  figure.measures = {{kFig9Keys[0], "digit 1 found (%)", 1},
                     {kFig9Keys[1], "digit 0 found (%)", 1},
                     {"accuracy", "test accuracy (%)", 1}};
  figure.synthetic = digits_substitute;
  figure.jobs = fig9_jobs;
  figure.measure = fig9_measure;
  figure.paper = fig9_paper();
  figure.claims = [](const ResultTable& table, const FigureRun& run) {
    return judged({stays_high(table, kFig9Keys[0], "1"), stays_high(table, kFig9Keys[1], "0")}, run);
  };
  figure.charts = {{.kind = FigureChart::Kind::line, .x = "samples", .y = kFig9Keys[0]},
                   {.kind = FigureChart::Kind::line, .x = "samples", .y = kFig9Keys[1]}};
  return figure;
}

}  // namespace sparsight::pmoe
