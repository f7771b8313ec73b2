#include <cmath>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/papers/robust_moe/figures/theory_figures.h"
#include "sparsight/papers/robust_moe/theory/instances.h"
#include "sparsight/reproduce/figure_claims.h"
#include "sparsight/reproduce/figure_parts.h"
#include "sparsight/reproduce/figure_settings.h"

namespace sparsight::robust_moe {
namespace {

struct RootOfSamplesOptions {
  Repeats repeats;
  int64_t width = 128;
  std::vector<int64_t> samples = {8, 16, 32, 64};
  void declare(OptionSet& set) {
    repeats.declare(set);
    set.integer("width", &width, {2, 4096}, "width of an input (D)");
    set.integers("samples", &samples, {1, 4095}, "numbers of samples (N), below the width");
  }
};

RootOfSamplesOptions root_of_samples_options(Scale scale) { return {{by_scale<int64_t>(scale, 1, 5, 20), 11}}; }

std::vector<Json> root_of_samples_jobs(const FigureRun& run) {
  const RootOfSamplesOptions options = chosen(root_of_samples_options, run);
  std::vector<Json> jobs;
  for (const int64_t samples : options.samples) {
    if (samples >= options.width)
      fail_usage("robust_moe/t10 needs fewer samples than the width ", options.width, ", got ", samples);
    jobs.push_back({{"samples", samples}, {"width", options.width}});
  }
  return with_seeds(jobs, options.repeats);
}

std::vector<Claim> root_of_samples_claims(const ResultTable& table, const FigureRun&) {
  std::vector<Margin> margins;
  for (const Json& samples : table.axis_values("samples")) {
    const Json row = {{"samples", samples}};
    margins.push_back({above(row, "relative", 90), cat("90 % at ", shown(samples), " samples")});
    margins.push_back({below(row, "relative", 110), cat("110 % at ", shown(samples), " samples")});
  }
  return {slope_within(table, "the norm grows at least as the root of N: a power between 0.5 and 0.75", "samples",
                       "norm", {0.5, 0.75}),
          judge(table, "the norm is within 10 % of sqrt(N / (1 - N / D))", margins, {.unit = "% from the limit"})};
}

}  // namespace

Figure root_of_samples_figure() {
  Figure figure;
  figure.name = "robust_moe/t10";
  figure.title =
      "fitting N random labels with a linear model takes a norm of about sqrt(N) (the law of Bubeck and Sellke)";
  figure.needs = "nothing";
  figure.duration = "1 s at any scale";
  figure.axes = {"samples"};
  figure.measures = {
      {"norm", "|w*|", 4}, {"theory", "sqrt(N / (1 - N / D))", 4}, {"relative", "|w*| relative to that (%)", 1}};
  figure.settings = make_settings(root_of_samples_options);
  figure.jobs = root_of_samples_jobs;
  figure.measure = [](const Json& settings, const FigureRun&) {
    const auto samples = settings.at("samples").get<int64_t>(), width = settings.at("width").get<int64_t>();
    const LabelledRows rows = gaussian_rows(samples, width, settings.at("seed").get<uint32_t>());
    const double norm = fit_fixed_routing(split_consecutive(rows, 1)).norm(), n = static_cast<double>(samples),
                 theory = std::sqrt(n / (1 - n / static_cast<double>(width)));
    return Json{{"norm", norm}, {"theory", theory}, {"relative", 100 * norm / theory}};
  };
  figure.claims = root_of_samples_claims;
  FigureChart chart;
  chart.x = "samples";
  chart.y = "norm";
  chart.guide = FigureGuide{"a + b sqrt(N)", 0.5, 0};
  figure.charts = {chart};
  figure.notes = {
      "Inputs N(0, I/D), labels +1 or -1 at random, the interpolating solution with the smallest norm. The law of "
      "Bubeck and Sellke, which the paper quotes, is a lower bound of order sqrt(N D / P) for P parameters. It does "
      "not say that a larger model is smoother.",
      "The first seed is 11; every N has the same seeds."};
  return figure;
}

}  // namespace sparsight::robust_moe
