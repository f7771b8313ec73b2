#include <cmath>

#include "sparsight/core/error.h"
#include "sparsight/papers/pmoe/figures/theory_figures.h"
#include "sparsight/papers/pmoe/theory/router_gradient.h"
#include "sparsight/reproduce/figure_claims.h"
#include "sparsight/reproduce/figure_parts.h"
#include "sparsight/reproduce/log_slope.h"

namespace sparsight::pmoe {

Figure router_mean_figure() {
  Figure figure;
  figure.name = "pmoe/t1";
  figure.title = "the router's mean gradient converges to -(o1 - o2)/2 (lemma E.1), EASY profile";
  figure.needs = "nothing";
  figure.duration = "smoke 1 s, small 5 s, paper 30 s, on 2 cores";
  figure.axes = {"samples"};
  figure.measures = {{"deviation", "distance of the mean gradient from -(o1 - o2)/2", 4},
                     {"scaled", "the same times sqrt(samples) / n", 3}};
  figure.jobs = [](const FigureRun& run) {
    std::vector<Json> sizes;
    for (int64_t samples = 100; samples <= by_scale<int64_t>(run, 400, 6400, 12800); samples *= 2)
      sizes.push_back({{"samples", samples}});
    return with_seeds(sizes, by_scale<int64_t>(run, 2, 5, 10));
  };
  figure.measure = [](const Json& settings, const FigureRun&) {
    const PatternModelOptions options = easy_patterns(settings.at("seed").get<uint64_t>());
    const auto samples = settings.at("samples").get<int64_t>();
    const double deviation = router_gradient_deviation(PatternModel(options), "train", samples);
    return Json{{"deviation", deviation},
                {"scaled", deviation * std::sqrt(static_cast<double>(samples)) / static_cast<double>(options.patches)}};
  };
  figure.claims = [](const ResultTable& table, const FigureRun& run) {
    std::vector<Claim> claims = {all_at_most(table, "the distance is at most n / sqrt(samples)", "scaled", 1)};
    Claim rate{
        "the distance falls with the square root of the number of samples: log-log slope -1/2 within 0.15", "", {}};
    const double slope = log_log_slope(measured_points(table, "samples", "deviation"));
    rate.measured = shown_number(slope);
    if (run.scale == Scale::smoke)
      rate.measured += " from three sizes: too few to judge";
    else
      rate.holds = std::abs(slope + 0.5) <= 0.15;
    claims.push_back(rate);
    return claims;
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
