// Figure 3b: numbers of experts, each with a division of the classes into as many super-classes.
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/papers/mobile_vmoe/figures/mobile_figures.h"
#include "sparsight/reproduce/figure_parts.h"

namespace sparsight::mobile_vmoe {
namespace {

constexpr int64_t kBestExperts = 10;  // of the paper

struct ExpertsOptions : MobileOptions {
  std::vector<int64_t> numbers;
  explicit ExpertsOptions(Scale scale) : MobileOptions(mobile_options(scale)) {
    numbers = by_scale<std::vector<int64_t>>(scale, {2, 4}, {5, 10, 20}, {5, 7, 10, 15, 20});
  }
  void declare(OptionSet& set) {
    MobileOptions::declare(set);
    set.integers("numbers", &numbers, {2, 1024}, "numbers of experts, ascending");
  }
};
ExpertsOptions experts_options(Scale scale) { return ExpertsOptions(scale); }

std::vector<Json> experts_jobs(const FigureRun& run) {
  const ExpertsOptions options = chosen(experts_options, run);
  std::vector<Json> jobs;
  for (const int64_t experts : options.numbers) jobs.push_back({{"E", experts}});
  return with_seeds(jobs, options.repeats);
}

MobileRow experts_row(const Json& job, const ExpertsOptions& options) {
  MobileModel moe = mobile_model(options, kSemantic);
  moe.experts = job.at("E");
  return {moe, mobile_model(options, kDense)};
}

std::vector<Claim> experts_claims(const ResultTable& table, const FigureRun&) {
  std::vector<Margin> rises, stays, routed;
  for (const Json& experts : table.axis_values("E")) {
    const std::string where = cat("at E = ", shown(experts));
    if (experts < kBestExperts) rises.push_back({between("E", kBestExperts, experts, "accuracy"), where});
    if (experts <= kBestExperts) continue;
    const Statistic gain = between("E", experts, kBestExperts, "accuracy");
    stays.push_back({[gain](const SeedMeans& mean) -> std::optional<double> {
                       const auto found = gain(mean);
                       return found ? std::optional(1 - *found) : std::nullopt;
                     },
                     where});
    routed.push_back({between("E", kBestExperts, experts, "router_accuracy"), where});
  }
  return {judge(table, "the model is more accurate with 10 experts than with fewer", rises, {.decimals = 2}),
          judge(table, "beyond 10 experts it gains less than a point", stays,
                {.unit = "points below 1 point more than with 10", .decimals = 2}),
          judge(table, "the router's accuracy drops beyond 10 experts", routed)};
}

}  // namespace

Figure experts_figure() {
  Figure figure = mobile_figure("mobile_vmoe/experts", "accuracy of model and router by the number of experts");
  figure.duration = "smoke 10 s, small 2 h, paper weeks, on 2 cores; less where other figures have trained the models";
  figure.axes = {"E"};
  set_options(figure, experts_options);
  figure.jobs = experts_jobs;
  measure_rows(figure, experts_options, experts_row);
  figure.claims = experts_claims;
  figure.charts = {{.x = "E", .y = "accuracy"}, {.x = "E", .y = "router_accuracy"}};
  figure.notes.push_back(
      "The paper's curve is not available as numbers; its statement: the model improves up to E = 10, then stagnates, "
      "and the router's accuracy drops beyond. Classes are divided anew for each E.");
  return figure;
}

}  // namespace sparsight::mobile_vmoe
