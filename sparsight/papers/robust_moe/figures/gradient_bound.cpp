#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include <nlohmann/json.hpp>

#include "sparsight/papers/robust_moe/figures/theory_figures.h"
#include "sparsight/papers/robust_moe/theory/smooth_moe.h"
#include "sparsight/reproduce/figure_parts.h"
#include "sparsight/reproduce/figure_settings.h"
#include "sparsight/reproduce/margins.h"

namespace sparsight::robust_moe {
namespace {

struct GradientBoundOptions {
  int64_t points = 1;
  std::vector<double> half_widths = {0.5, 1, 2, 3, 5}, temperatures = {0.25, 1, 4};
  void declare(OptionSet& set) {
    set.integer("points", &points, {2, 2000}, "points on a side of the grid");
    set.floats("half_widths", &half_widths, {1e-3, 1e3}, "the grid covers [-h, h]² for each of these h");
    set.floats("temperatures", &temperatures, {1e-3, 10}, "factors of the router's scores");
  }
};

GradientBoundOptions gradient_bound_options(Scale scale) { return {by_scale<int64_t>(scale, 31, 301, 301)}; }

at::Tensor doubles(std::initializer_list<double> values) { return at::tensor(values, at::kDouble); }

// Three experts in two dimensions.
TheoryMoe three_experts(double temperature) {
  return {
      temperature * doubles({1, 0.5, -0.5, 1, 0.25, -0.75}).view({3, 2}),
      tanh_experts(doubles({1, -1, 0.5, 0.5, -1, 0.25}).view({3, 2}), doubles({1, 2, -1.5}), doubles({0.5, -0.25, 0}))};
}

}  // namespace

Figure gradient_bound_figure() {
  Figure figure;
  figure.name = "robust_moe/t1";
  figure.title = "the gradient of a smooth MoE is at most the experts' part plus the router's part (lemma 1)";
  figure.needs = "nothing";
  figure.duration = "smoke 1 s, small and paper 5 s, on 2 cores";
  figure.axes = {"half width", "temperature"};
  figure.measures = {
      {"gradient", "largest gradient", 4},        {"router", "largest router's part", 4},
      {"bound", "bound of equation 7", 4},        {"tightness", "largest gradient / bound of lemma 1 (%)", 2},
      {"violations", "points beyond a bound", 0}, {"difference", "gradient minus central difference", 12}};
  figure.settings = make_settings(gradient_bound_options);
  figure.jobs = [](const FigureRun& run) {
    const GradientBoundOptions options = chosen(gradient_bound_options, run);
    std::vector<Json> jobs;
    for (const double temperature : options.temperatures)
      for (const double half_width : options.half_widths)
        jobs.push_back({{"half width", half_width}, {"temperature", temperature}, {"points", options.points}});
    return jobs;
  };
  figure.measure = [](const Json& settings, const FigureRun&) {
    const Lemma1Check found =
        check_lemma1(three_experts(settings.at("temperature").get<double>()),
                     square_grid(settings.at("half width").get<double>(), settings.at("points").get<int64_t>()));
    return Json{{"gradient", found.gradient},     {"router", found.router},
                {"bound", found.bound()},         {"tightness", 100 * found.tightness},
                {"violations", found.violations}, {"difference", found.difference}};
  };
  figure.claims = [](const ResultTable& table, const FigureRun&) {
    return std::vector<Claim>{
        every_trial_at_most(table, "no gradient exceeds lemma 1's bound, its sharper form or equation 7", "violations",
                            0),
        every_trial_at_most(table, "the two parts add up to the gradient, to within 1e-8 of central differences",
                            "difference", 1e-8)};
  };
  FigureChart chart;
  chart.x = "half width";
  chart.y = "tightness";
  chart.series = "temperature";
  chart.levels = {{"lemma 1", 100.0}};
  figure.charts = {chart};
  figure.notes = {
      "Three experts a tanh(<v, x>) + c in two dimensions, on a square grid. Temperature: a factor of the router's "
      "scores.",
      "The sharper form has the norm of each expert's gradient at the point instead of its Lipschitz constant.",
      "Differs from the paper: the supremum in equation 7 is taken over the grid. See robust_moe/t3."};
  return figure;
}

}  // namespace sparsight::robust_moe
