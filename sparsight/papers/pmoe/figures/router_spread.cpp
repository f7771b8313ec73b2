#include <cmath>

#include "sparsight/papers/pmoe/figures/theory_figures.h"
#include "sparsight/papers/pmoe/theory/router_gradient.h"
#include "sparsight/reproduce/figure_parts.h"
#include "sparsight/reproduce/log_slope.h"

namespace sparsight::pmoe {

Figure router_spread_figure() {
  Figure figure;
  figure.name = "pmoe/t3";
  figure.title = "the deviation of a batch's router gradient is of order n / sqrt(batch) (appendix E), EASY profile";
  figure.needs = "nothing";
  figure.duration = "smoke 2 s, small 20 s, paper 2 min, on 2 cores";
  figure.axes = {"batch"};
  figure.measures = {{"deviation", "RMS distance of a batch's gradient from the mean", 4}};
  figure.jobs = [](const FigureRun& run) {
    std::vector<Json> sizes;
    const int64_t samples = by_scale<int64_t>(run, 2048, 8192, 12800);
    for (int64_t batch = 4; batch <= samples / 32; batch *= 2)
      sizes.push_back({{"batch", batch}, {"samples", samples}});
    return with_seeds(sizes, by_scale<int64_t>(run, 1, 3, 10));
  };
  figure.measure = [](const Json& settings, const FigureRun&) {
    const auto seed = settings.at("seed").get<uint64_t>();
    const PatternSamples samples =
        PatternModel(easy_patterns(seed)).sample("train", settings.at("samples").get<int64_t>());
    return Json{
        {"deviation", batch_gradient_deviation(router_gradients(samples), settings.at("batch").get<int64_t>(), seed)}};
  };
  figure.claims = [](const ResultTable& table, const FigureRun&) {
    const double slope = log_log_slope(measured_points(table, "batch", "deviation"));
    return std::vector<Claim>{
        {"the deviation falls with the square root of the batch size: log-log slope -1/2 within 0.05",
         shown_number(slope), std::abs(slope + 0.5) <= 0.05}};
  };
  FigureChart chart;
  chart.x = "batch";
  chart.y = "deviation";
  chart.logarithmic_x = chart.logarithmic_y = true;
  figure.charts = {chart};
  return figure;
}

}  // namespace sparsight::pmoe
