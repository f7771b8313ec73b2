#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <nlohmann/json.hpp>

#include "sparsight/papers/robust_moe/figures/theory_figures.h"
#include "sparsight/papers/robust_moe/theory/smooth_moe.h"
#include "sparsight/reproduce/figure_parts.h"
#include "sparsight/reproduce/figure_settings.h"
#include "sparsight/reproduce/margins.h"

namespace sparsight::robust_moe {
namespace {

struct RouterRadiusOptions {
  std::vector<double> radii = {0, 1, 10, 100};
  void declare(OptionSet& set) { set.floats("radii", &radii, {0, 1e6}, "distances from the origin"); }
};

RouterRadiusOptions router_radius_options(Scale scale) {
  RouterRadiusOptions options;
  if (scale != Scale::smoke) options.radii = {0, 1, 2, 5, 10, 20, 50, 100};
  return options;
}

constexpr const char *kBoundary = "on the boundary", *kAway = "away from the boundary",
                     *kParallel = "on the boundary, w_1 - w_2 parallel to s_1 - s_2";

Json measure_radius(const std::string& path, double radius) {
  const at::Tensor rows = at::tensor({2., 1., 0., -1.}, at::kDouble).view({2, 2});
  const double second = path == kParallel ? -1 : 1;  // w_1 = (1, 0), w_2 = (0, second)
  const at::Tensor weights = at::tensor({1., 0., 0., second}, at::kDouble).view({2, 2});
  const at::Tensor direction =
      path == kAway ? at::tensor({1., 0.}, at::kDouble) : at::tensor({1., -1.}, at::kDouble) / std::sqrt(2.0);
  const GradientSplit split =
      split_gradient({rows, linear_experts(weights, at::zeros({2}, at::kDouble))}, (radius * direction).view({1, 2}));
  return {{"gradient", spectral_norms(split.gradient()).item<double>()},
          {"router", spectral_norms(split.router).item<double>()},
          {"radius of x", radius}};
}

}  // namespace

Figure router_radius_figure() {
  Figure figure;
  figure.name = "robust_moe/t3";
  figure.title = "linear experts: on the boundary the router's part grows with the radius, without limit (equation 7)";
  figure.needs = "nothing";
  figure.duration = "1 s at any scale";
  figure.axes = {"path", "radius"};
  figure.measures = {{"router", "router's part", 6}, {"gradient", "gradient", 6}, {"radius of x", "|x|", 0}};
  figure.settings = make_settings(router_radius_options);
  figure.jobs = [](const FigureRun& run) {
    std::vector<Json> jobs;
    for (const char* path : {kBoundary, kAway, kParallel})
      for (const double radius : chosen(router_radius_options, run).radii)
        jobs.push_back({{"path", path}, {"radius", radius}});
    return jobs;
  };
  figure.measure = [](const Json& settings, const FigureRun&) {
    return measure_radius(settings.at("path").get<std::string>(), settings.at("radius").get<double>());
  };
  figure.claims = [](const ResultTable& table, const FigureRun&) {
    return std::vector<Claim>{
        every_trial_at_most(table, "at radius 100 the router's part is below 0.001 everywhere, as the paper remarks",
                            "router", 1e-3, {{"radius", 100.0}}),
        every_trial_at_most(table, "away from the boundary it is", "router", 1e-3,
                            {{"path", kAway}, {"radius", 100.0}}),
        every_trial_equal(table, "on the boundary it equals the radius", "router", "radius of x",
                          {{"path", kBoundary}}),
        every_trial_at_most(table, "on the boundary it is 0 where w_1 - w_2 is parallel to s_1 - s_2", "router", 1e-12,
                            {{"path", kParallel}})};
  };
  FigureChart chart;
  chart.x = "radius";
  chart.y = "router";
  chart.series = "path";
  figure.charts = {chart};
  figure.notes = {
      "s_1 = (2, 1), s_2 = (0, -1), w_1 = (1, 0), w_2 = (0, 1). The paper remarks that for a large |x| the softmax "
      "usually collapses to one expert and the router's part vanishes. On the boundary both gates stay 1/2, and the "
      "outputs of linear experts move apart.",
      "Differs from the paper: the supremum of equation 7 is over a bounded set everywhere in this project."};
  return figure;
}

}  // namespace sparsight::robust_moe
