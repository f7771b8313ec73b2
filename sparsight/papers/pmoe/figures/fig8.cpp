// Figure 8: how often the separately trained router of a class chooses the cell that determines the label.
#include <nlohmann/json.hpp>

#include "sparsight/papers/pmoe/figures/digit_runs.h"
#include "sparsight/papers/pmoe/figures/figures.h"
#include "sparsight/papers/pmoe/figures/found_cells.h"
#include "sparsight/reproduce/figure_claims.h"
#include "sparsight/reproduce/figure_parts.h"

namespace sparsight::pmoe {
namespace {

const std::vector<int64_t> kFig8Taken = {1, 2, 4, 6, 8};

struct Fig8Options : DigitOptions {
  std::vector<int64_t> samples, patches = kFig8Taken;
  int64_t filters = 20;
  void declare(OptionSet& set) {
    DigitOptions::declare(set);
    declare_samples(set, &samples);
    set.integers("patches", &patches, {1, 16}, "patches that count as taken (l)");
  }
};

Fig8Options fig8_options(Scale scale) {
  Fig8Options options{digit_options(scale, 5), {}};
  options.samples = by_scale<std::vector<int64_t>>(scale, {100}, {100, 300, 1000},
                                                   {100, 200, 300, 400, 500, 600, 700, 800, 900, 1000});
  return options;
}

std::vector<Json> fig8_jobs(const FigureRun& run) {
  const Fig8Options options = chosen(fig8_options, run);
  std::vector<Json> jobs;
  for (const int64_t samples : options.samples)
    for (const int64_t patches : options.patches)
      for (const Json& job :
           digit_jobs({{"patches", patches}, {"samples", samples}},
                      digit_setting("paper", "separate", {2, options.filters, patches}, options), options))
        jobs.push_back(job);
  return jobs;
}

Json fig8_measure(const Json& job, const FigureRun& run) {
  const uint64_t seed = shared_seed(job);
  const DigitSets sets = digit_sets(run, job.at("samples"), job.at("test"), seed);
  const TwoLayerSetting setting = job_setting(job);
  const auto model = make_two_layer(setting, sets.train, {seed, seed});
  PatchSgd(model, sets.train, setting.sgd, seed).train_routers();
  return {{"found", found_by_right_expert(*model, sets.test)}};
}

std::vector<Json> fig8_paper() {
  const std::vector<std::vector<double>> found = {{73.6, 79.8, 84.2, 84.1, 84.4, 84.5, 84.4, 84.9, 85.4, 85.5},
                                                  {86.8, 88.4, 92.1, 90.8, 91.1, 91.3, 91.2, 91.8, 91.8, 91.7},
                                                  {95.0, 94.8, 96.4, 96.4, 96.4, 96.1, 96.3, 96.4, 96.8, 96.8},
                                                  {97.9, 97.2, 97.9, 97.7, 97.9, 97.8, 97.8, 97.8, 98.1, 98.1},
                                                  {98.9, 98.3, 98.9, 98.5, 98.5, 98.7, 98.7, 98.7, 99.1, 99.1}};
  std::vector<Json> rows;
  for (size_t i = 0; i < kFig8Taken.size(); ++i)
    for (int64_t j = 0; j < 10; ++j)
      rows.push_back({{"patches", kFig8Taken[i]}, {"samples", 100 * (j + 1)}, {"found", found[i][j]}});
  return rows;
}

}  // namespace

Figure fig8() {
  Figure figure;
  figure.name = "pmoe/fig8";
  figure.title = "test samples whose cell the right router chooses, routers trained separately";
  figure.needs = kDigitNeeds;
  figure.duration = "smoke 2 s, small 20 s, paper 1 min, on 2 cores";
  figure.axes = {"patches", "samples"};
  figure.measures = {{"found", "cell among the patches taken (%)", 1, {"test", true}}};
  figure.data = digit_data();
  figure.settings = make_settings(fig8_options);
  figure.jobs = fig8_jobs;
  figure.measure = fig8_measure;
  figure.paper = fig8_paper();
  figure.claims = [](const ResultTable& table, const FigureRun&) -> std::vector<Claim> {
    return {all_at_least(table, "with 300 samples, the cell is in the top 4 patches in at least 93 % of test samples",
                         "found", 93, {{"patches", 4}, {"samples", 300}})};
  };
  figure.charts = {{.kind = FigureChart::Kind::line, .x = "samples", .y = "found", .series = "patches"}};
  figure.notes = {"The samples are those of the routers (N_r); no expert is trained.",
                  "Differs from the paper: points are means over several trials; the paper shows one trial."};
  return figure;
}

}  // namespace sparsight::pmoe
