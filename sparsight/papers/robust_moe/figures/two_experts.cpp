#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/papers/robust_moe/figures/theory_figures.h"
#include "sparsight/papers/robust_moe/theory/instances.h"
#include "sparsight/reproduce/figure_parts.h"
#include "sparsight/reproduce/margins.h"

namespace sparsight::robust_moe {
namespace {

constexpr const char *kOrthogonal = "orthogonal inputs", *kSame = "same inputs, same targets",
                     *kOpposite = "same inputs, opposite targets";
constexpr const char *kDense = "dense", *kFirst = "expert 1", *kSecond = "expert 2";

TwoExpertCase case_named(const std::string& name) {
  return name == kOrthogonal ? TwoExpertCase::orthogonal
         : name == kSame     ? TwoExpertCase::same_targets
                             : TwoExpertCase::opposite_targets;
}

Json measure_case(const std::string& name, const std::string& solution) {
  const FixedRouting fit = fit_fixed_routing(two_expert_case(case_named(name)));
  const std::vector<double> norms = fit.expert_norms();
  if (solution != kDense) return {{"norm", norms[solution == kFirst ? 0 : 1]}};
  return {{"norm", fit.norm()},
          {"root", std::hypot(norms[0], norms[1])},
          {"above_largest", fit.norm() - std::max(norms[0], norms[1])},
          {"above_smallest", fit.norm() - std::min(norms[0], norms[1])}};
}

std::vector<Claim> case_claims(const ResultTable& table, const FigureRun&) {
  const auto dense = [](const char* name) { return Json{{"case", name}, {"solution", kDense}}; };
  constexpr double kZero = 1e-12;
  return {
      every_trial_at_most(table, "orthogonal inputs: |w*| <= max |w_i*|, as printed", "above_largest", kZero,
                          dense(kOrthogonal)),
      every_trial_at_least(table, "orthogonal inputs: |w*| >= max |w_i*|, corrected", "above_largest", -kZero,
                           dense(kOrthogonal)),
      every_trial_equal(table, "orthogonal inputs: |w*|² = |w_1*|² + |w_2*|²", "norm", "root", dense(kOrthogonal)),
      every_trial_at_most(table, "same inputs and targets: w* = 0, as printed", "norm", kZero, dense(kSame)),
      every_trial_at_most(table, "same inputs, opposite targets: w* = 0, corrected", "norm", kZero, dense(kOpposite)),
      every_trial_at_most(table, "same inputs, opposite targets: the dense model is smoother than every expert",
                          "above_smallest", -kZero, dense(kOpposite))};
}

}  // namespace

Figure two_experts_figure() {
  Figure figure;
  figure.name = "robust_moe/t5";
  figure.title =
      "two linear experts against one dense model: the illustrations before theorem 1, as printed and corrected";
  figure.needs = "nothing";
  figure.duration = "1 s at any scale";
  figure.axes = {"case", "solution"};
  figure.measures = {{"norm", "norm of the solution", 6},
                     {"root", "sqrt(|w_1*|² + |w_2*|²)", 6},
                     {"above_largest", "|w*| - max |w_i*|", 6},
                     {"above_smallest", "|w*| - min |w_i*|", 6}};
  figure.jobs = [](const FigureRun&) {
    std::vector<Json> jobs;
    for (const char* name : {kOrthogonal, kSame, kOpposite})
      for (const char* solution : {kDense, kFirst, kSecond}) jobs.push_back({{"case", name}, {"solution", solution}});
    return jobs;
  };
  figure.measure = [](const Json& settings, const FigureRun&) {
    return measure_case(settings.at("case").get<std::string>(), settings.at("solution").get<std::string>());
  };
  figure.claims = case_claims;
  FigureChart chart;
  chart.kind = FigureChart::Kind::bars;
  chart.x = "case";
  chart.y = "norm";
  chart.series = "solution";
  figure.charts = {chart};
  figure.notes = {
      "Differs from the paper: for orthogonal inputs it prints that the dense norm is at most the larger expert's; its "
      "own conclusion, that experts are smoother, needs the opposite, which is true.",
      "Differs from the paper: for equal inputs it assumes equal targets and finds a dense norm of 0. That takes "
      "opposite targets; with equal targets all three solutions are the same."};
  return figure;
}

}  // namespace sparsight::robust_moe
