#include <algorithm>

#include "sparsight/papers/pmoe/figures/pattern_runs.h"
#include "sparsight/papers/pmoe/figures/theory_figures.h"
#include "sparsight/papers/pmoe/theory/router_gradient.h"
#include "sparsight/reproduce/figure_claims.h"
#include "sparsight/reproduce/figure_parts.h"

namespace sparsight::pmoe {
namespace {

PatternOptions router_spread_options(Scale scale) {
  return {{by_scale<int64_t>(scale, 1, 3, 10)}, by_scale<int64_t>(scale, 2048, 8192, 12800)};
}

}  // namespace

Figure router_spread_figure() {
  Figure figure;
  figure.name = "pmoe/t3";
  figure.title = "the deviation of a batch's router gradient is of order n / sqrt(batch) (appendix E), EASY profile";
  figure.needs = "nothing";
  figure.duration = "smoke 2 s, small 20 s, paper 2 min, on 2 cores";
  figure.axes = {"batch"};
  figure.measures = {{"deviation", "RMS distance of a batch's gradient from the mean", 4}};
  figure.settings = make_settings(router_spread_options);
  figure.jobs = [](const FigureRun& run) {
    const PatternOptions options = chosen(router_spread_options, run);
    std::vector<Json> sizes;
    for (int64_t batch = 4; batch <= std::max<int64_t>(4, options.samples / 32); batch *= 2)
      sizes.push_back({{"batch", batch}, {"samples", options.samples}});
    return with_seeds(sizes, options.repeats);
  };
  figure.measure = [](const Json& settings, const FigureRun&) {
    const auto seed = settings.at("seed").get<uint64_t>();
    const PatternSamples samples =
        PatternModel(easy_patterns(seed)).sample("train", settings.at("samples").get<int64_t>());
    return Json{
        {"deviation", batch_gradient_deviation(router_gradients(samples), settings.at("batch").get<int64_t>(), seed)}};
  };
  figure.claims = [](const ResultTable& table, const FigureRun&) -> std::vector<Claim> {
    return {slope_within(table,
                         "the deviation falls with the square root of the batch size: log-log slope -1/2 within 0.05",
                         "batch", "deviation", {-0.55, -0.45})};
  };
  FigureChart chart;
  chart.x = "batch";
  chart.y = "deviation";
  chart.logarithmic_x = chart.logarithmic_y = true;
  figure.charts = {chart};
  return figure;
}

}  // namespace sparsight::pmoe
