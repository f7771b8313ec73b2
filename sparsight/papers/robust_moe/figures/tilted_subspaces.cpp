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

struct TiltOptions {
  std::vector<double> tilts = {0, 0.001, 0.005, 0.01, 0.02, 0.05};
  void declare(OptionSet& set) {
    set.floats("tilts", &tilts, {0, 10}, "how far the experts' directions are from orthogonal");
  }
};

TiltOptions tilt_options(Scale scale) {
  TiltOptions options;
  if (scale == Scale::paper) options.tilts = {0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1};
  return options;
}

struct TiltBound {
  const char* name;
  bool eigenvectors, companion;
};
constexpr TiltBound kTiltBounds[] = {{"theorem 1, eigenvectors", true, false},
                                     {"theorem 1, orthogonalised", false, false},
                                     {"companion, eigenvectors", true, true},
                                     {"companion, orthogonalised", false, true}};

Json measure_tilt(const TiltBound& bound, double tilt) {
  const RoutedData data = tilted_subspaces(tilt);
  const FixedRouting fit = fit_fixed_routing(data);
  const Theorem1 found =
      theorem1(data, fit, bound.eigenvectors ? eigenvector_subspaces(fit) : orthogonalised_subspaces(fit));
  const double value = bound.companion ? found.companion : found.right;
  Json result = {{"value", value}, {"left", found.left}, {"share", 100 * value / found.left}};
  if (bound.companion) return result;
  result["epsilon_1"] = found.epsilon_1;
  result["epsilon_2"] = found.epsilon_2;
  result["gain"] = found.companion - found.right;
  return result;
}

std::vector<Claim> tilt_claims(const ResultTable& table, const FigureRun&) {
  constexpr double kRounded = 1e-9;
  return {every_trial_at_most(table, "no bound exceeds |w*|²", "share", 100 * (1 + kRounded)),
          every_trial_equal(table, "for orthogonal data every bound is |w*|² itself", "value", "left", {{"tilt", 0.0}}),
          every_trial_at_least(table, "the companion is at least theorem 1's bound", "gain", -kRounded),
          every_trial_at_most(table, "at a tilt of 0.05 theorem 1 says nothing with the paper's subspaces", "share", 0,
                              {{"tilt", 0.05}, {"bound", kTiltBounds[0].name}}),
          every_trial_at_least(table, "at a tilt of 0.05 it still says something with orthogonalised subspaces",
                               "share", 1, {{"tilt", 0.05}, {"bound", kTiltBounds[1].name}})};
}

}  // namespace

Figure tilted_subspaces_figure() {
  Figure figure;
  figure.name = "robust_moe/t6";
  figure.title = "theorem 1 says less the further the experts' inputs are from orthogonal";
  figure.needs = "nothing";
  figure.duration = "1 s at any scale";
  figure.axes = {"bound", "tilt"};
  figure.measures = {{"value", "bound of |w*|²", 6},    {"left", "|w*|²", 6},
                     {"share", "bound / |w*|² (%)", 2}, {"epsilon_1", "epsilon_1", 6},
                     {"epsilon_2", "epsilon_2", 6},     {"gain", "companion - theorem 1", 6}};
  figure.settings = make_settings(tilt_options);
  figure.jobs = [](const FigureRun& run) {
    std::vector<Json> jobs;
    for (const TiltBound& bound : kTiltBounds)
      for (const double tilt : chosen(tilt_options, run).tilts) jobs.push_back({{"bound", bound.name}, {"tilt", tilt}});
    return jobs;
  };
  figure.measure = [](const Json& settings, const FigureRun&) {
    for (const TiltBound& bound : kTiltBounds)
      if (settings.at("bound") == bound.name) return measure_tilt(bound, settings.at("tilt").get<double>());
    fail("unknown bound ", shown(settings.at("bound")));
  };
  figure.claims = tilt_claims;
  FigureChart chart;
  chart.x = "tilt";
  chart.y = "share";
  chart.series = "bound";
  figure.charts = {chart};
  figure.notes = {
      "Three experts of 4 samples, each on two directions of R^6.",
      "The companion has |w_i*| - |U_i U_i^T w* - w_i*| as its brackets: what theorem 1 bounds with epsilon_1 and "
      "epsilon_2.",
      "Differs from the paper: it takes eigenvectors of X^T X for the subspaces. Orthogonalising the experts' spans "
      "one after the other gives a smaller epsilon_1 here, and the theorem holds for any orthogonal family."};
  return figure;
}

}  // namespace sparsight::robust_moe
