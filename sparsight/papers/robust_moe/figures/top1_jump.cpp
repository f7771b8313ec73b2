#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/papers/robust_moe/figures/theory_figures.h"
#include "sparsight/papers/robust_moe/theory/smooth_moe.h"
#include "sparsight/reproduce/figure_parts.h"
#include "sparsight/reproduce/figure_settings.h"
#include "sparsight/reproduce/margins.h"

namespace sparsight::robust_moe {
namespace {

struct JumpOptions {
  std::vector<double> distances = {1e-4, 1e-2, 0.1}, temperatures = {1, 10, 100};
  void declare(OptionSet& set) {
    set.floats("distances", &distances, {1e-9, 10}, "distances h of the two inputs from the boundary");
    set.floats("temperatures", &temperatures, {1e-3, 1e6}, "factors of the smooth router's scores");
  }
};

JumpOptions jump_options(Scale scale) {
  JumpOptions options;
  if (scale != Scale::smoke) options.distances = {1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1};
  return options;
}

constexpr const char* kTop1 = "top-1";
std::string smooth_name(double temperature) { return cat("smooth, temperature ", temperature); }

// f_1 = 2 x_1 + x_2 + 1 and f_2 = -2 x_1 + x_2 - 1 on the two sides of x_1 = 0.
TheoryMoe two_sides(double temperature) {
  return {temperature * at::tensor({1., 0., -1., 0.}, at::kDouble).view({2, 2}),
          linear_experts(at::tensor({2., 1., -2., 1.}, at::kDouble).view({2, 2}), at::tensor({1., -1.}, at::kDouble))};
}

Json measure_jump(bool top1, double temperature, double h) {
  const TheoryMoe moe = two_sides(temperature);
  const at::Tensor x = at::tensor({h, 0., -h, 0., 0., 0.}, at::kDouble).view({3, 2});
  const at::Tensor outputs = top1 ? top1_outputs(moe, x) : smooth_outputs(moe, x);
  const double jump = (outputs[0] - outputs[1]).item<double>();
  if (top1) return {{"jump", jump}, {"slope", jump / (2 * h)}, {"closed", 1 / h}};
  const double at_zero = split_gradient(moe, x).gradient()[2][0][0].item<double>();
  return {{"jump", jump},
          {"slope", jump / (2 * h)},
          {"closed", std::tanh(temperature * h) / h},
          {"at_zero", at_zero},
          {"temperature_of", temperature}};
}

std::vector<Json> jump_jobs(const FigureRun& run) {
  const JumpOptions options = chosen(jump_options, run);
  std::vector<Json> jobs;
  for (const double h : options.distances) jobs.push_back({{"layer", kTop1}, {"h", h}, {"temperature", 1.0}});
  for (const double temperature : options.temperatures)
    for (const double h : options.distances)
      jobs.push_back({{"layer", smooth_name(temperature)}, {"h", h}, {"temperature", temperature}});
  return jobs;
}

}  // namespace

Figure top1_jump_figure() {
  Figure figure;
  figure.name = "robust_moe/t4";
  figure.title = "top-1 routing jumps at the boundary, the smooth MoE has a slope of at most its temperature there";
  figure.needs = "nothing";
  figure.duration = "1 s at any scale";
  figure.axes = {"layer", "h"};
  figure.measures = {{"jump", "f(h) - f(-h)", 6},
                     {"slope", "slope between -h and h", 6},
                     {"closed", "the same in closed form", 6},
                     {"at_zero", "slope at 0", 6},
                     {"temperature_of", "temperature", 0}};
  figure.settings = make_settings(jump_options);
  figure.jobs = jump_jobs;
  figure.measure = [](const Json& settings, const FigureRun&) {
    return measure_jump(settings.at("layer") == kTop1, settings.at("temperature").get<double>(),
                        settings.at("h").get<double>());
  };
  figure.claims = [](const ResultTable& table, const FigureRun&) {
    return std::vector<Claim>{
        every_trial_at_least(table, "top-1 routing jumps by 2, however close the two inputs", "jump", 2 - 1e-9,
                             {{"layer", kTop1}}),
        every_trial_equal(table, "slopes are 1/h with top-1 routing, tanh(temperature h) / h with the smooth MoE",
                          "slope", "closed"),
        every_trial_equal(table, "at the boundary the smooth MoE has the temperature as its slope", "at_zero",
                          "temperature_of")};
  };
  FigureChart chart;
  chart.x = "h";
  chart.y = "slope";
  chart.series = "layer";
  chart.logarithmic_x = chart.logarithmic_y = true;
  figure.charts = {chart};
  figure.notes = {
      "f_1 = 2 x_1 + x_2 + 1, f_2 = -2 x_1 + x_2 - 1, scores x_1 and -x_1. The slopes 2 and -2 of the experts cancel; "
      "what is left is the router's part.",
      "So equation 1 has no Lipschitz constant, and the Lipschitz constants of section 3.2 are those of the experts, "
      "not of the layer."};
  return figure;
}

}  // namespace sparsight::robust_moe
