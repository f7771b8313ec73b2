#include <ATen/TensorOperators.h>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/papers/robust_moe/figures/theory_figures.h"
#include "sparsight/papers/robust_moe/theory/instances.h"
#include "sparsight/reproduce/figure_parts.h"
#include "sparsight/reproduce/figure_settings.h"
#include "sparsight/reproduce/margins.h"

namespace sparsight::robust_moe {
namespace {

struct SplitRegimesOptions {
  Repeats repeats;
  std::vector<int64_t> experts = {1, 2, 4, 8, 16};
  void declare(OptionSet& set) {
    repeats.declare(set);
    set.integers("experts", &experts, {1, 64}, "numbers of experts (E)");
  }
};

SplitRegimesOptions split_regimes_options(Scale scale) { return {{by_scale<int64_t>(scale, 1, 5, 20), 3}}; }

struct SplitRegime {
  const char* name;
  int64_t samples, width;
  bool random;
};
constexpr SplitRegime kSplitRegimes[] = {
    {"interpolating: 64 samples of width 128, split at random", 64, 128, true},
    {"noisy: 256 samples of width 16, split in turn", 256, 16, false},
};

Json measure_regime(const SplitRegime& regime, int64_t experts, uint32_t seed) {
  const LabelledRows rows = gaussian_rows(regime.samples, regime.width, seed);
  const FixedRouting fit =
      fit_fixed_routing(regime.random ? split_randomly(rows, experts, seed) : split_modulo(rows, experts));
  const NormRatios ratios = norm_ratios(fit);
  const double error = (rows.inputs.matmul(fit.weights) - rows.labels).abs().max().item<double>();
  return {{"largest", ratios.largest},
          {"largest_norm", ratios.largest * fit.norm()},
          {"norm", fit.norm()},
          {"error", error}};
}

}  // namespace

Figure split_regimes_figure() {
  Figure figure;
  figure.name = "robust_moe/t12";
  figure.title = "experts are never less smooth than a dense model that interpolates, but than one that does not";
  figure.needs = "nothing";
  figure.duration = "1 s at any scale";
  figure.axes = {"regime", "experts"};
  figure.measures = {{"largest", "max |w_i*| / |w*|", 4},
                     {"largest_norm", "max |w_i*|", 4},
                     {"norm", "|w*|", 4},
                     {"error", "largest training error of the dense model", 3}};
  figure.settings = make_settings(split_regimes_options);
  figure.jobs = [](const FigureRun& run) {
    const SplitRegimesOptions options = chosen(split_regimes_options, run);
    std::vector<Json> jobs;
    for (const SplitRegime& regime : kSplitRegimes)
      for (const int64_t experts : options.experts) jobs.push_back({{"regime", regime.name}, {"experts", experts}});
    return with_seeds(jobs, options.repeats);
  };
  figure.measure = [](const Json& settings, const FigureRun&) {
    for (const SplitRegime& regime : kSplitRegimes)
      if (settings.at("regime") == regime.name)
        return measure_regime(regime, settings.at("experts").get<int64_t>(), settings.at("seed").get<uint32_t>());
    fail("unknown regime ", shown(settings.at("regime")));
  };
  figure.claims = [](const ResultTable& table, const FigureRun&) {
    return std::vector<Claim>{
        every_trial_at_most(table, "interpolating: no expert has a larger norm than the dense model", "largest",
                            1 + 1e-9, {{"regime", kSplitRegimes[0].name}}),
        every_trial_at_most(table, "noisy: no expert has a larger norm than the dense model", "largest", 1 + 1e-9,
                            {{"regime", kSplitRegimes[1].name}})};
  };
  FigureChart chart;
  chart.x = "experts";
  chart.y = "largest";
  chart.series = "regime";
  chart.logarithmic_x = chart.logarithmic_y = true;
  chart.levels = {{"the dense model", 1.0}};
  figure.charts = {chart};
  figure.notes = {
      "Inputs N(0, I/D), labels +1 or -1 at random. If the dense solution fits every sample, it also fits those of any "
      "expert, whose own solution has the smallest norm. Otherwise experts with few samples fit the noise; with 16 "
      "experts each has as many samples as dimensions, and a nearly singular matrix.",
      "The first seed is 3."};
  return figure;
}

}  // namespace sparsight::robust_moe
