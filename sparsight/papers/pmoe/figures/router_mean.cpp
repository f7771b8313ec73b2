#include <cmath>

#include "sparsight/papers/pmoe/figures/theory_figures.h"
#include "sparsight/papers/pmoe/theory/router_gradient.h"
#include "sparsight/reproduce/figure_claims.h"
#include "sparsight/reproduce/figure_parts.h"
#include "sparsight/reproduce/figure_settings.h"

namespace sparsight::pmoe {
namespace {

struct RouterMeanOptions {
  Repeats repeats;
  std::vector<int64_t> samples;
  void declare(OptionSet& set) {
    repeats.declare(set);
    set.integers("samples", &samples, {2, 1000000}, "numbers of samples");
  }
};

RouterMeanOptions router_mean_options(Scale scale) {
  RouterMeanOptions options{{by_scale<int64_t>(scale, 2, 5, 10)}, {}};
  for (int64_t samples = 100; samples <= by_scale<int64_t>(scale, 400, 6400, 12800); samples *= 2)
    options.samples.push_back(samples);
  return options;
}

}  // namespace

Figure router_mean_figure() {
  Figure figure;
  figure.name = "pmoe/t1";
  figure.title = "the router's mean gradient converges to -(o1 - o2)/2 (lemma E.1), EASY profile";
  figure.needs = "nothing";
  figure.duration = "smoke 1 s, small 5 s, paper 30 s, on 2 cores";
  figure.axes = {"samples"};
  figure.measures = {{"deviation", "distance of the mean gradient from -(o1 - o2)/2", 4},
                     {"scaled", "the same times sqrt(samples) / n", 3}};
  figure.settings = make_settings(router_mean_options);
  figure.jobs = [](const FigureRun& run) {
    const RouterMeanOptions options = chosen(router_mean_options, run);
    std::vector<Json> sizes;
    for (const int64_t samples : options.samples) sizes.push_back({{"samples", samples}});
    return with_seeds(sizes, options.repeats);
  };
  figure.measure = [](const Json& settings, const FigureRun&) {
    const PatternModelOptions options = easy_patterns(settings.at("seed").get<uint64_t>());
    const auto samples = settings.at("samples").get<int64_t>();
    const double deviation = router_gradient_deviation(PatternModel(options), "train", samples);
    return Json{{"deviation", deviation},
                {"scaled", deviation * std::sqrt(static_cast<double>(samples)) / static_cast<double>(options.patches)}};
  };
  figure.claims = [](const ResultTable& table, const FigureRun&) -> std::vector<Claim> {
    return {
        all_at_most(table, "the distance is at most n / sqrt(samples)", "scaled", 1),
        slope_within(table,
                     "the distance falls with the square root of the number of samples: log-log slope -1/2 within 0.15",
                     "samples", "deviation", {-0.65, -0.35})};
  };
  FigureChart chart;
  chart.x = "samples";
  chart.y = "deviation";
  chart.logarithmic_x = chart.logarithmic_y = true;
  figure.charts = {chart};
  figure.notes = {
      "Differs from the paper: labels are exactly balanced instead of random. The contribution of the patterns to the "
      "mean is therefore exact; the remaining deviation comes from irrelevant patches."};
  return figure;
}

}  // namespace sparsight::pmoe
