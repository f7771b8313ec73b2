// Figure 3c: numbers of MoE layers. The more there are, the fewer layers come before the router.
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/papers/mobile_vmoe/figures/mobile_figures.h"
#include "sparsight/reproduce/figure_claims.h"
#include "sparsight/reproduce/figure_parts.h"

namespace sparsight::mobile_vmoe {
namespace {

constexpr int64_t kBestLayers = 2;  // of the paper

struct LayersOptions : MobileOptions {
  std::vector<int64_t> numbers;
  explicit LayersOptions(Scale scale) : MobileOptions(mobile_options(scale)) {
    numbers = by_scale<std::vector<int64_t>>(scale, {1, 2}, {1, 2, 4}, {1, 2, 4, 6, 8});
  }
  void declare(OptionSet& set) {
    MobileOptions::declare(set);
    set.integers("numbers", &numbers, {1, 100}, "numbers of MoE layers, ascending");
  }
};
LayersOptions layers_options(Scale scale) { return LayersOptions(scale); }

std::vector<Json> layers_jobs(const FigureRun& run) {
  const LayersOptions options = chosen(layers_options, run);
  const int64_t depth = read_size(options.size).depth;
  std::vector<Json> jobs;
  for (const int64_t layers : options.numbers) {
    if (layers >= depth)
      fail_usage("numbers: with ", layers, " MoE layers of ", depth, " no layer comes before the router; at most ",
                 depth - 1);
    jobs.push_back({{"L", layers}});
  }
  return with_seeds(jobs, options.repeats);
}

MobileRow layers_row(const Json& job, const LayersOptions& options) {
  MobileModel moe = mobile_model(options, kSemantic);
  moe.layers = job.at("L");
  return {moe, mobile_model(options, kDense)};
}

std::vector<Claim> layers_claims(const ResultTable& table, const FigureRun&) {
  std::vector<Margin> peak;
  for (const Json& layers : table.axis_values("L"))
    if (layers != kBestLayers)
      peak.push_back({between("L", kBestLayers, layers, "accuracy"), cat("at L = ", shown(layers))});
  return {
      judge(table, "the model is most accurate with 2 MoE layers", peak, {.decimals = 2}),
      falls_between_ends(table, "the router's accuracy falls as more layers come after it", "L", "router_accuracy")};
}

}  // namespace

Figure layers_figure() {
  Figure figure = mobile_figure("mobile_vmoe/layers", "accuracy of model and router by the number of MoE layers");
  figure.duration = "smoke 10 s, small 1 h, paper weeks, on 2 cores; less where other figures have trained the models";
  figure.axes = {"L"};
  set_options(figure, layers_options);
  figure.jobs = layers_jobs;
  measure_rows(figure, layers_options, layers_row);
  figure.claims = layers_claims;
  figure.charts = {{.x = "L", .y = "accuracy"}, {.x = "L", .y = "router_accuracy"}};
  figure.notes.push_back(
      "The paper's curve is not available as numbers; its statement: a peak at L = 2 of 12 layers and a quick fall for "
      "larger L, since the router sits after the other layers and its accuracy declines.");
  return figure;
}

}  // namespace sparsight::mobile_vmoe
