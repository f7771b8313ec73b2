#include <cmath>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/papers/robust_moe/figures/theory_figures.h"
#include "sparsight/papers/robust_moe/theory/instances.h"
#include "sparsight/reproduce/figure_parts.h"
#include "sparsight/reproduce/figure_settings.h"
#include "sparsight/reproduce/margins.h"

namespace sparsight::robust_moe {
namespace {

constexpr int64_t kBlocks = 16;  // of 3 samples in 4 dimensions

struct RootOfExpertsOptions {
  Repeats repeats;
  std::vector<int64_t> experts = {1, 2, 4, 8, 16};
  void declare(OptionSet& set) {
    repeats.declare(set);
    set.integers("experts", &experts, {1, kBlocks}, "numbers of experts (E) that divide 16");
  }
};

RootOfExpertsOptions root_of_experts_options(Scale scale) { return {{by_scale<int64_t>(scale, 1, 5, 20), 7}}; }

constexpr const char *kByBlock = "by block", *kInTurn = "in turn (n mod E)";

std::vector<Json> root_of_experts_jobs(const FigureRun& run) {
  const RootOfExpertsOptions options = chosen(root_of_experts_options, run);
  std::vector<Json> jobs;
  for (const char* routing : {kByBlock, kInTurn})
    for (const int64_t experts : options.experts) {
      if (kBlocks % experts != 0)
        fail_usage("robust_moe/t11 needs numbers of experts that divide ", kBlocks, ", got ", experts);
      jobs.push_back({{"routing", routing}, {"experts", experts}});
    }
  return with_seeds(jobs, options.repeats);
}

std::vector<Claim> root_of_experts_claims(const ResultTable& table, const FigureRun&) {
  std::vector<Margin> margins;
  for (const Json& experts : table.axis_values("experts"))
    if (experts.get<int64_t>() > 1)
      margins.push_back({row_difference({{"routing", kInTurn}, {"experts", experts}},
                                        {{"routing", kByBlock}, {"experts", experts}}, "rms"),
                         cat("with ", shown(experts), " experts")});
  const Json by_block = {{"routing", kByBlock}};
  return {every_trial_equal(table, "by block, the root mean square of |w_i*| / |w*| is 1 / sqrt(E)", "rms", "root",
                            by_block),
          every_trial_at_most(table, "by block, every single expert has at most 1 / sqrt(E) of the dense norm",
                              "unbalanced", 1 + 1e-9, by_block),
          judge(table, "routing by block gives smaller norms than routing in turn", margins,
                {.unit = "of |w*|", .decimals = 3})};
}

}  // namespace

Figure root_of_experts_figure() {
  Figure figure;
  figure.name = "robust_moe/t11";
  figure.title = "orthogonal blocks: each of E experts is sqrt(E) times smoother in the root mean square (corollary)";
  figure.needs = "nothing";
  figure.duration = "smoke 1 s, small 2 s, paper 5 s, on 2 cores";
  figure.axes = {"routing", "experts"};
  figure.measures = {{"rms", "root mean square of |w_i*| / |w*|", 6},
                     {"largest", "max |w_i*| / |w*|", 6},
                     {"root", "1 / sqrt(E)", 6},
                     {"unbalanced", "max |w_i*| sqrt(E) / |w*|", 4},
                     {"rows", "samples of an expert", 0}};
  figure.settings = make_settings(root_of_experts_options);
  figure.jobs = root_of_experts_jobs;
  figure.measure = [](const Json& settings, const FigureRun&) {
    const auto experts = settings.at("experts").get<int64_t>();
    const LabelledRows rows = block_rows(kBlocks, settings.at("seed").get<uint32_t>());
    const bool by_block = settings.at("routing") == kByBlock;
    const NormRatios ratios =
        norm_ratios(fit_fixed_routing(by_block ? split_consecutive(rows, experts) : split_modulo(rows, experts)));
    const double root = std::sqrt(static_cast<double>(experts));
    return Json{{"rms", ratios.rms},
                {"largest", ratios.largest},
                {"root", 1 / root},
                {"unbalanced", ratios.largest * root},
                {"rows", rows.inputs.size(0) / experts}};
  };
  figure.claims = root_of_experts_claims;
  FigureChart chart;
  chart.x = "experts";
  chart.y = "rms";
  chart.series = "routing";
  chart.logarithmic_x = chart.logarithmic_y = true;
  figure.charts = {chart};
  figure.notes = {
      "16 blocks of 3 unit rows with random labels, each on its own 4 of 64 coordinates; the dense model interpolates. "
      "Expert i has 16 / E blocks, or every E-th row. The first seed is 7.",
      "An expert also has fewer samples than the dense model, and that alone lowers its norm: routing in turn, which "
      "ignores the geometry, lowers it more. Compare at equal numbers of samples per expert before crediting the "
      "geometry.",
      "Differs from the paper: its O(sqrt(E)) is a lower bound of the gain, Omega(sqrt(E)), and each expert reaches it "
      "only if all norms are equal."};
  return figure;
}

}  // namespace sparsight::robust_moe
