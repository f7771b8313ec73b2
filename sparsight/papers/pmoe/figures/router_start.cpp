#include "sparsight/papers/pmoe/theory/router_start.h"

#include "sparsight/papers/pmoe/figures/theory_figures.h"
#include "sparsight/reproduce/figure_parts.h"
#include "sparsight/reproduce/figure_settings.h"
#include "sparsight/reproduce/margins.h"

namespace sparsight::pmoe {
namespace {

struct RouterStartOptions {
  Repeats repeats;
  int64_t draws = 1;
  std::vector<int64_t> patches = {4, 8, 16, 32, 64}, widths = {64, 784};
  void declare(OptionSet& set) {
    repeats.declare(set);
    set.integer("draws", &draws, {1, 10000000}, "routers in each trial");
    set.integers("patches", &patches, {3, 100000}, "patches of a sample (n)");
    set.integers("widths", &widths, {1, 100000}, "widths of a patch (d)");
  }
};

RouterStartOptions router_start_options(Scale scale) {
  return {{by_scale<int64_t>(scale, 1, 3, 5)}, by_scale<int64_t>(scale, 500, 5000, 20000)};
}

}  // namespace

Figure router_start_figure() {
  Figure figure;
  figure.name = "pmoe/t2";
  figure.title = "the initial norm of the routers is at most 1/n² (lemma E.2)";
  figure.needs = "nothing";
  figure.duration = "smoke 1 s, small 2 s, paper 10 s, on 2 cores";
  figure.axes = {"patches", "width"};
  figure.measures = {{"within", "initial routers with a norm of at most 1/n² (%)", 2},
                     {"norm", "mean norm times n²", 3}};
  figure.settings = make_settings(router_start_options);
  figure.jobs = [](const FigureRun& run) {
    const RouterStartOptions options = chosen(router_start_options, run);
    std::vector<Json> jobs;
    for (const int64_t patches : options.patches)
      for (const int64_t width : options.widths)
        jobs.push_back({{"patches", patches}, {"width", width}, {"draws", options.draws}});
    return with_seeds(jobs, options.repeats);
  };
  figure.measure = [](const Json& settings, const FigureRun&) {
    const RouterStart start = router_start(settings.at("patches").get<int64_t>(), settings.at("width").get<int64_t>(),
                                           settings.at("draws").get<int64_t>(), settings.at("seed").get<uint64_t>());
    return Json{{"within", 100 * start.within}, {"norm", start.mean_norm / start.bound}};
  };
  figure.claims = [](const ResultTable& table, const FigureRun&) {
    return std::vector<Claim>{every_trial_at_least(
        table, "at least 99.9 % of the initial routers have a norm of at most 1/n²", "within", 99.9)};
  };
  FigureChart chart;
  chart.x = "patches";
  chart.y = "norm";
  chart.series = "width";
  chart.logarithmic_x = true;
  chart.levels = {{"1/n²", 1.0}};
  figure.charts = {chart};
  figure.notes = {
      "Standard deviation 1 / (n² ln(n) sqrt(d)): the paper gives the order, the constant 1 is our choice. With two "
      "patches ln(n) is below 1 and the bound would not hold."};
  return figure;
}

}  // namespace sparsight::pmoe
