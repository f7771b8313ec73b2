#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/papers/robust_moe/figures/theory_figures.h"
#include "sparsight/papers/robust_moe/theory/instances.h"
#include "sparsight/papers/robust_moe/theory/theorem1.h"
#include "sparsight/reproduce/figure_parts.h"
#include "sparsight/reproduce/figure_settings.h"
#include "sparsight/reproduce/margins.h"

namespace sparsight::robust_moe {
namespace {

struct PrintedDefinitionOptions {
  double first = 0.1;
  std::vector<double> second = {-0.1, -0.075, -0.05, 0, 0.05, 0.1};
  void declare(OptionSet& set) {
    set.real("first", &first, {-1e3, 1e3}, "target of the first expert");
    set.floats("second", &second, {-1e3, 1e3}, "targets of the second expert");
  }
};

PrintedDefinitionOptions printed_definition_options(Scale scale) {
  PrintedDefinitionOptions options;
  if (scale == Scale::smoke) return options;
  options.second.clear();
  for (int i = -10; i <= 10; ++i) options.second.push_back(0.01 * i);
  return options;
}

constexpr const char *kLeft = "|w*|²", *kAsPrinted = "bound with definition 1 as printed",
                     *kAsCorrected = "bound with it corrected";

Json measure_definition(const std::string& side, double first, double second) {
  const RoutedData data = scalar_case(first, second);
  const FixedRouting fit = fit_fixed_routing(data);
  const ExpertSubspaces subspaces = best_subspaces(fit);
  const Theorem1 found = side == kAsPrinted ? printed_theorem1(data, fit, subspaces) : theorem1(data, fit, subspaces);
  if (side == kLeft) return {{"value", found.left}};
  return {{"value", found.right}, {"excess", found.right - found.left}, {"epsilon_1", found.epsilon_1}};
}

}  // namespace

Figure printed_definition_figure() {
  Figure figure;
  figure.name = "robust_moe/t8";
  figure.title = "one dimension, two samples: definition 1 as printed gives a bound that is wrong";
  figure.needs = "nothing";
  figure.duration = "1 s at any scale";
  figure.axes = {"side", "second target"};
  figure.measures = {{"value", "value", 6}, {"excess", "bound - |w*|²", 6}, {"epsilon_1", "epsilon_1", 6}};
  figure.settings = make_settings(printed_definition_options);
  figure.jobs = [](const FigureRun& run) {
    const PrintedDefinitionOptions options = chosen(printed_definition_options, run);
    std::vector<Json> jobs;
    for (const char* side : {kLeft, kAsPrinted, kAsCorrected})
      for (const double second : options.second)
        jobs.push_back({{"side", side}, {"second target", second}, {"first target", options.first}});
    return jobs;
  };
  figure.measure = [](const Json& settings, const FigureRun&) {
    return measure_definition(settings.at("side").get<std::string>(), settings.at("first target").get<double>(),
                              settings.at("second target").get<double>());
  };
  figure.claims = [](const ResultTable& table, const FigureRun&) {
    constexpr double kRounded = 1e-12;
    return std::vector<Claim>{
        every_trial_at_most(table, "with definition 1 as printed theorem 1 is a lower bound of |w*|²", "excess",
                            kRounded, {{"side", kAsPrinted}}),
        every_trial_at_most(table, "with definition 1 corrected it is", "excess", kRounded, {{"side", kAsCorrected}})};
  };
  FigureChart chart;
  chart.x = "second target";
  chart.y = "value";
  chart.series = "side";
  figure.charts = {chart};
  figure.notes = {
      "X_1 = X_2 = [1]; the first target is 0.1. With a second target of -0.05: w* = 0.025, the printed epsilon_1 is "
      "0.075, and the bound 0.002139 exceeds |w*|² = 0.000625. The corrected epsilon_1 is 1, and the bound 0."};
  return figure;
}

}  // namespace sparsight::robust_moe
