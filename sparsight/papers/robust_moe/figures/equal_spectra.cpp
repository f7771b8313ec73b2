#include <cmath>

#include <nlohmann/json.hpp>

#include "sparsight/papers/robust_moe/figures/theory_figures.h"
#include "sparsight/papers/robust_moe/theory/instances.h"
#include "sparsight/papers/robust_moe/theory/theorem1.h"
#include "sparsight/reproduce/figure_parts.h"
#include "sparsight/reproduce/figure_settings.h"
#include "sparsight/reproduce/margins.h"

namespace sparsight::robust_moe {
namespace {

Repeats spectra_options(Scale scale) { return {by_scale<int64_t>(scale, 2, 5, 20)}; }

constexpr const char *kEqualScales = "equal", *kDistinctScales = "1, 1.1, 1.2, 1.3";
constexpr const char *kEigenvectors = "eigenvectors (paper)", *kOrthogonalised = "orthogonalised";

Json measure_spectra(bool equal_scales, bool eigenvectors, uint64_t seed) {
  const RoutedData data = orthogonal_blocks(equal_scales, seed);
  const FixedRouting fit = fit_fixed_routing(data);
  const Theorem1 found = theorem1(data, fit, eigenvectors ? eigenvector_subspaces(fit) : orthogonalised_subspaces(fit));
  return {{"epsilon_1", found.epsilon_1},
          {"share", 100 * found.right / found.left},
          {"ratio", norm_ratios(fit).rms},
          {"root", 1 / std::sqrt(static_cast<double>(data.experts()))}};
}

}  // namespace

Figure equal_spectra_figure() {
  Figure figure;
  figure.name = "robust_moe/t9";
  figure.title = "orthogonal experts whose Gram matrices have equal eigenvalues: eigenvectors mix them";
  figure.needs = "nothing";
  figure.duration = "1 s at any scale";
  figure.axes = {"scales", "subspaces"};
  figure.measures = {{"epsilon_1", "epsilon_1", 6},
                     {"share", "theorem 1's bound / |w*|² (%)", 2},
                     {"ratio", "|w_i*| / |w*|", 6},
                     {"root", "1 / sqrt(E)", 6}};
  figure.settings = make_settings(spectra_options);
  figure.jobs = [](const FigureRun& run) {
    std::vector<Json> jobs;
    for (const char* scales : {kEqualScales, kDistinctScales})
      for (const char* subspaces : {kEigenvectors, kOrthogonalised})
        jobs.push_back({{"scales", scales}, {"subspaces", subspaces}});
    return with_seeds(jobs, chosen(spectra_options, run));
  };
  figure.measure = [](const Json& settings, const FigureRun&) {
    return measure_spectra(settings.at("scales") == kEqualScales, settings.at("subspaces") == kEigenvectors,
                           settings.at("seed").get<uint64_t>());
  };
  figure.claims = [](const ResultTable& table, const FigureRun&) {
    constexpr double kZero = 1e-10;
    const auto rows = [](const char* scales, const char* subspaces) {
      return Json{{"scales", scales}, {"subspaces", subspaces}};
    };
    return std::vector<Claim>{
        every_trial_at_most(table, "with distinct eigenvalues epsilon_1 is 0 with the paper's subspaces", "epsilon_1",
                            kZero, rows(kDistinctScales, kEigenvectors)),
        every_trial_at_most(table, "with equal eigenvalues epsilon_1 is 0 with the paper's subspaces", "epsilon_1",
                            kZero, rows(kEqualScales, kEigenvectors)),
        every_trial_at_most(table, "with orthogonalised subspaces epsilon_1 is 0", "epsilon_1", kZero,
                            {{"subspaces", kOrthogonalised}}),
        every_trial_equal(table, "the norm of each of E = 4 experts is 1 / sqrt(E) of the dense norm (corollary)",
                          "ratio", "root")};
  };
  FigureChart chart;
  chart.kind = FigureChart::Kind::bars;
  chart.x = "scales";
  chart.y = "share";
  chart.series = "subspaces";
  figure.charts = {chart};
  figure.notes = {
      "Four experts on two coordinates each of R^8, rotated by a random orthogonal matrix for each seed. Their inputs "
      "and targets have the given scales.",
      "Differs from the paper: it gives each eigenvector of X^T X to one expert. Eigenvectors of a repeated eigenvalue "
      "are arbitrary, and theorem 1 then says nothing about data for which it should be an equality. Orthogonalising "
      "the experts' spans needs no eigenvectors; where nothing else is said the smaller epsilon_1 of both is used."};
  return figure;
}

}  // namespace sparsight::robust_moe
