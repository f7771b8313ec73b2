// Separate training whose routers see fewer samples than its experts: N_r < N of lemma 4.1 and algorithm 1.
#include <nlohmann/json.hpp>

#include "sparsight/papers/pmoe/figures/digit_runs.h"
#include "sparsight/papers/pmoe/figures/figures.h"
#include "sparsight/papers/pmoe/figures/found_cells.h"
#include "sparsight/reproduce/figure_parts.h"
#include "sparsight/reproduce/margins.h"

namespace sparsight::pmoe {
namespace {

constexpr double kSameAccuracy = 1;  // points

struct RouterSamplesOptions : DigitOptions {
  std::vector<int64_t> router_samples;
  int64_t samples = 1000;
  NetworkSize size{2, 20, 2};
  void declare(OptionSet& set) {
    DigitOptions::declare(set);
    set.integers("router_samples", &router_samples, {2, 1000000},
                 "numbers of samples that the routers are trained on (N_r), ascending; the last is compared with");
    set.integer("samples", &samples, {2, 1000000}, "samples that the experts are trained on (N)");
    set.integer("filters", &size.filters, {1, 100000}, "filters of each of the two experts");
    set.integer("patches", &size.patches, {1, 16}, "patches per expert (l)");
  }
};

RouterSamplesOptions router_samples_options(Scale scale) {
  RouterSamplesOptions options{digit_options(scale, 10), {}};
  options.samples = by_scale<int64_t>(scale, 100, 1000, 1000);
  options.router_samples =
      by_scale<std::vector<int64_t>>(scale, {20, 100}, {30, 100, 300, 1000}, {10, 30, 100, 300, 1000});
  return options;
}

std::vector<Json> router_samples_jobs(const FigureRun& run) {
  const RouterSamplesOptions options = chosen(router_samples_options, run);
  TwoLayerSetting setting = digit_setting("paper", "separate", options.size, options);
  std::vector<Json> jobs;
  for (const int64_t count : options.router_samples) {
    setting.sgd.router_samples = count;
    for (const Json& job : digit_jobs({{"router_samples", count}}, setting, options, {{"samples", options.samples}}))
      jobs.push_back(job);
  }
  return jobs;
}

Json router_samples_measure(const Json& job, const FigureRun& run) {
  const DigitTrial trial = train_digit_job(job, run);
  Json result = accuracy_json(trial);
  result["found"] = found_by_right_expert(*trial.result.model, trial.test);
  return result;
}

// Fewer samples lose at most a point against the most, which both statements compare with.
std::vector<Claim> router_samples_claims(const ResultTable& table, const FigureRun& run) {
  const RouterSamplesOptions options = chosen(router_samples_options, run);
  const Json most = {{"router_samples", options.router_samples.back()}},
             few = {{"router_samples", options.router_samples.front()}};
  const auto loss = [&](const Json& row) -> Statistic {
    return [=](const SeedMeans& mean) -> std::optional<double> {
      const auto of_few = mean(row, "accuracy"), of_most = mean(most, "accuracy");
      return of_few && of_most ? std::optional(kSameAccuracy - (*of_most - *of_few)) : std::nullopt;
    };
  };
  std::vector<Margin> margins;
  for (const int64_t count : options.router_samples)
    if (count >= 300 && count < options.samples)
      margins.push_back({loss({{"router_samples", count}}), cat("with ", count, " samples")});
  return {judge(table, "from 300 of the samples on, routers lose at most 1 point against routers of all samples",
                margins, {.ties = true, .unit = "points within"}),
          judge(table, "routers of the fewest samples find the cell less often than routers of all samples",
                {{row_difference(most, few, "found"), {}}})};
}

}  // namespace

Figure router_samples_figure() {
  Figure figure;
  figure.name = "pmoe/router_samples";
  figure.title = "separate training whose routers are trained on N_r < N samples";
  figure.needs = kDigitNeeds;
  figure.duration = "smoke 2 s, small 20 s, paper 1 min, on 2 cores";
  figure.axes = {"router_samples"};
  figure.measures = accuracy_measures();
  figure.measures.insert(figure.measures.begin() + 1, {"found", "cell among the patches taken (%)", 1, {"test", true}});
  figure.data = digit_data();
  figure.settings = make_settings(router_samples_options);
  figure.jobs = router_samples_jobs;
  figure.measure = router_samples_measure;
  figure.claims = router_samples_claims;
  figure.charts = {{.kind = FigureChart::Kind::line, .x = "router_samples", .y = "accuracy", .logarithmic_x = true},
                   {.kind = FigureChart::Kind::line, .x = "router_samples", .y = "found", .logarithmic_x = true}};
  figure.notes = {
      "The routers are trained on the first N_r samples of the training set, the experts on all N. The paper's theory "
      "has N_r < N (lemma 4.1); its released code trains both on the same samples.",
      "The paper has no such figure. Its text says that with 300 samples the cell is among four patches in 95 % of "
      "the test samples."};
  return figure;
}

}  // namespace sparsight::pmoe
