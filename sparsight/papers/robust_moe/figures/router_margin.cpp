#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/papers/robust_moe/figures/theory_figures.h"
#include "sparsight/papers/robust_moe/theory/smooth_moe.h"
#include "sparsight/reproduce/figure_parts.h"
#include "sparsight/reproduce/figure_settings.h"
#include "sparsight/reproduce/margins.h"

namespace sparsight::robust_moe {
namespace {

struct RouterMarginOptions {
  std::vector<double> margins = {0, 1, 2, 4, 8};
  double temperature = 1;
  void declare(OptionSet& set) {
    set.floats("margins", &margins, {0, 1000}, "differences of the two experts' scores at temperature 1");
    set.real("temperature", &temperature, {1e-3, 1e4}, "factor of the router's scores");
  }
};

RouterMarginOptions router_margin_options(Scale scale) {
  RouterMarginOptions options;
  if (scale != Scale::smoke) options.margins = {0, 0.5, 1, 1.5, 2, 3, 4, 6, 8};
  return options;
}

constexpr std::pair<double, double> kOutputs[] = {{3, -1}, {1, 0.9}};
std::string outputs_text(std::pair<double, double> outputs) { return cat(outputs.first, " and ", outputs.second); }

Json measure_margin(std::pair<double, double> outputs, double margin, double temperature) {
  const at::Tensor rows = at::tensor({2., 1., 0., -1.}, at::kDouble).view({2, 2});  // s_1 - s_2 = (2, 2)
  const TheoryMoe moe{temperature * rows, linear_experts(at::zeros({2, 2}, at::kDouble),
                                                         at::tensor({outputs.first, outputs.second}, at::kDouble))};
  const GradientSplit split = split_gradient(moe, at::tensor({margin / 4, margin / 4}, at::kDouble).view({1, 2}));
  const double distance = temperature * std::sqrt(8.0), p = 1 / (1 + std::exp(-temperature * margin));
  const double quarter = std::abs(outputs.first - outputs.second) * distance / 4;
  const double norm = spectral_norms(split.router).item<double>();
  return {{"norm", norm},
          {"closed", two_expert_router_norm(p, outputs.first, outputs.second, distance)},
          {"quarter", quarter},
          {"share", 100 * norm / quarter}};
}

}  // namespace

Figure router_margin_figure() {
  Figure figure;
  figure.name = "robust_moe/t2";
  figure.title = "two experts: the router's part of the gradient is largest on the boundary between them (lemma 1)";
  figure.needs = "nothing";
  figure.duration = "1 s at any scale";
  figure.axes = {"outputs", "margin"};
  figure.measures = {{"norm", "router's part", 6},
                     {"closed", "p (1 - p) |f_1 - f_2| |s_1 - s_2|", 6},
                     {"quarter", "|f_1 - f_2| |s_1 - s_2| / 4", 6},
                     {"share", "share of that (%)", 2}};
  figure.settings = make_settings(router_margin_options);
  figure.jobs = [](const FigureRun& run) {
    const RouterMarginOptions options = chosen(router_margin_options, run);
    std::vector<Json> jobs;
    for (const auto& outputs : kOutputs)
      for (const double margin : options.margins)
        jobs.push_back({{"outputs", outputs_text(outputs)}, {"margin", margin}, {"temperature", options.temperature}});
    return jobs;
  };
  figure.measure = [](const Json& settings, const FigureRun&) {
    for (const auto& outputs : kOutputs)
      if (settings.at("outputs") == outputs_text(outputs))
        return measure_margin(outputs, settings.at("margin").get<double>(), settings.at("temperature").get<double>());
    fail("unknown outputs ", shown(settings.at("outputs")));
  };
  figure.claims = [](const ResultTable& table, const FigureRun&) {
    return std::vector<Claim>{
        every_trial_equal(table, "the router's part is p (1 - p) |f_1 - f_2| |s_1 - s_2|", "norm", "closed"),
        every_trial_equal(table, "on the boundary it is a quarter of |f_1 - f_2| |s_1 - s_2|, as printed", "norm",
                          "quarter", {{"margin", 0.0}}),
        every_trial_at_most(table, "at a margin of 8 less than 1 % of that is left", "share", 1, {{"margin", 8.0}})};
  };
  FigureChart chart;
  chart.x = "margin";
  chart.y = "norm";
  chart.series = "outputs";
  chart.logarithmic_y = true;
  figure.charts = {chart};
  figure.notes = {
      "Two experts with constant outputs, s_1 = (2, 1), s_2 = (0, -1). Margin: the difference of their scores.",
      "Experts that disagree where the router is undecided are what makes an MoE steep. A temperature multiplies this "
      "on the boundary, so the bound grows without limit as the layer approaches top-1 routing."};
  return figure;
}

}  // namespace sparsight::robust_moe
