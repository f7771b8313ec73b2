// Figure 9: how often the best jointly trained expert of a class gives its largest gate to the cell that determines the
// label.
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/papers/pmoe/figures/digit_runs.h"
#include "sparsight/papers/pmoe/figures/figures.h"
#include "sparsight/papers/pmoe/figures/found_cells.h"
#include "sparsight/reproduce/figure_parts.h"
#include "sparsight/reproduce/margins.h"

namespace sparsight::pmoe {
namespace {

const std::vector<std::string> kFig9Keys = {"found_1", "found_0"};  // the paper's class 1 is the digit 1, class 2 the 0

struct Fig9Options : DigitOptions {
  std::vector<int64_t> samples;
  NetworkSize size{8, 5, 6};
  void declare(OptionSet& set) {
    DigitOptions::declare(set);
    declare_samples(set, &samples);
    set.integer("experts", &size.experts, {1, 1000}, "experts (k)");
    set.integer("filters", &size.filters, {1, 100000}, "filters of each expert");
    set.integer("patches", &size.patches, {1, 16}, "patches per expert (l)");
  }
};

Fig9Options fig9_options(Scale scale) {
  Fig9Options options{digit_options(scale, 5), {}};
  options.samples = by_scale<std::vector<int64_t>>(scale, {100}, {100, 300, 1000},
                                                   {100, 200, 300, 400, 500, 600, 700, 800, 900, 1000});
  return options;
}

std::vector<Json> fig9_jobs(const FigureRun& run) {
  const Fig9Options options = chosen(fig9_options, run);
  std::vector<Json> jobs;
  for (const int64_t samples : options.samples)
    for (const Json& job :
         digit_jobs({{"samples", samples}}, digit_setting("paper", "joint", options.size, options), options))
      jobs.push_back(job);
  return jobs;
}

Json fig9_measure(const Json& job, const FigureRun& run) {
  const DigitTrial trial = train_digit_job(job, run);
  const PatchRoutingReport report = found_cells(*trial.result.model, trial.test);
  const auto share = [&](int64_t label) {
    return 100 * report.largest_share(label, report.best_expert(label)).value_or(0);
  };
  return {{"found_1", share(1)},
          {"found_0", share(0)},
          {"images_1", report.images[1]},
          {"images_0", report.images[0]},
          {"accuracy", 100 * trial.result.accuracy}};
}

std::vector<Json> fig9_paper() {
  const PaperCurve ones = {{75.2, 37}, {57.9, 46}, {95.3}, {92.3}, {95.6}, {95.1}, {94.2}, {94.8}, {94.3}, {94.9}};
  const PaperCurve zeros = {{87.8}, {91.5}, {90.4}, {89.9}, {90.3}, {91.4}, {90.5}, {91.2}, {91.0}, {92.0}};
  std::vector<Json> rows;
  for (size_t j = 0; j < ones.size(); ++j)
    rows.push_back(paper_row(paper_row({{"samples", 100 * (j + 1)}}, kFig9Keys[0], ones[j]), kFig9Keys[1], zeros[j]));
  return rows;
}

Claim stays_high(const ResultTable& table, const std::string& key, const std::string& digit) {
  std::vector<Margin> margins;
  for (const Json& samples : table.axis_values("samples"))
    if (samples.get<int64_t>() >= 300)
      margins.push_back({above({{"samples", samples}}, key, 88), cat("at ", shown(samples), " samples")});
  return judge(table, cat("from 300 samples on, the best expert finds the ", digit, " in at least 88 % of samples"),
               margins, {.ties = true, .unit = "points above 88 %"});
}

}  // namespace

Figure fig9() {
  Figure figure;
  figure.name = "pmoe/fig9";
  figure.title = "test samples whose label's cell gets the largest gate of the class's best expert, joint training";
  figure.needs = kDigitNeeds;
  figure.duration = "smoke 2 s, small 15 s, paper 1 min, on 2 cores";
  figure.axes = {"samples"};
  figure.measures = {{kFig9Keys[0], "digit 1 found (%)", 1, {"images_1", true}},
                     {kFig9Keys[1], "digit 0 found (%)", 1, {"images_0", true}},
                     {"accuracy", "test accuracy (%)", 1, {"test", true}}};
  figure.data = digit_data();
  figure.settings = make_settings(fig9_options);
  figure.jobs = fig9_jobs;
  figure.measure = fig9_measure;
  figure.paper = fig9_paper();
  figure.claims = [](const ResultTable& table, const FigureRun&) -> std::vector<Claim> {
    return {stays_high(table, kFig9Keys[0], "1"), stays_high(table, kFig9Keys[1], "0")};
  };
  figure.charts = {{.kind = FigureChart::Kind::line, .x = "samples", .y = kFig9Keys[0]},
                   {.kind = FigureChart::Kind::line, .x = "samples", .y = kFig9Keys[1]}};
  return figure;
}

}  // namespace sparsight::pmoe
