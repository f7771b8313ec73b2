#include "sparsight/core/error.h"
#include "sparsight/papers/pmoe/figures/theory_figures.h"
#include "sparsight/papers/pmoe/theory/router_training.h"
#include "sparsight/reproduce/figure_claims.h"
#include "sparsight/reproduce/figure_parts.h"

namespace sparsight::pmoe {
namespace {

std::vector<int64_t> training_sizes(const FigureRun& run) {
  return by_scale<std::vector<int64_t>>(run, {800}, {100, 200, 800}, {50, 100, 200, 400, 800, 1600});
}

std::string data_name(const char* profile, int64_t samples) { return cat(profile, ", ", samples, " samples"); }

std::vector<Json> router_rates_jobs(const FigureRun& run) {
  std::vector<Json> jobs;
  for (const char* profile : {"EASY", "HARD"})
    for (const int64_t samples : training_sizes(run))
      for (int64_t patches = 1; patches <= 8; ++patches)
        jobs.push_back(
            {{"data", data_name(profile, samples)}, {"patches", patches}, {"profile", profile}, {"samples", samples}});
  return with_seeds(jobs, by_scale<int64_t>(run, 1, 3, 10));
}

Json router_rates_measure(const Json& settings, const FigureRun& run) {
  RouterTrainingOptions training;
  training.seed = settings.at("seed").get<uint64_t>();
  const PatternModelOptions options =
      settings.at("profile") == "HARD" ? hard_patterns(training.seed) : easy_patterns(training.seed);
  const PatternModel model(options);
  const at::Tensor routers = train_routers(model.sample("train", settings.at("samples").get<int64_t>()), training);
  const PatternSamples test = model.sample("test", by_scale<int64_t>(run, 500, 1000, 1000));
  return Json{{"rate", 100 * routed_share(pattern_ranks(test, routers), settings.at("patches").get<int64_t>())},
              {"clear", 100 * clear_share(test, routers, model.patterns(), options.separation)}};
}

std::vector<Claim> router_rates_claims(const ResultTable& table, const FigureRun& run) {
  const int64_t samples = training_sizes(run).back();
  std::vector<Claim> claims;
  const auto rates = [&](const char* profile, int64_t first, int64_t last) {
    std::pair<double, double> range{101, -1};  // minimum, maximum
    for (int64_t l = first; l <= last; ++l)
      if (const auto rate = table.mean({{"data", data_name(profile, samples)}, {"patches", l}}, "rate"))
        range = {std::min(range.first, *rate), std::max(range.second, *rate)};
    return range;
  };
  const auto add = [&](const std::string& text, std::pair<double, double> range, double minimum, double maximum) {
    if (range.second < 0)
      claims.push_back({text, "not measured", std::nullopt});
    else
      claims.push_back(
          {text, cat(shown_number(range.first), " to ", shown_number(range.second), " % with ", samples, " samples"),
           range.first >= minimum && range.second <= maximum});
  };
  add("EASY (l* = 1): at least 99 % routed for every l", rates("EASY", 1, 8), 99, 100);
  add("HARD (l* = 6): chance level below l*, 44 to 56 % routed", rates("HARD", 1, 5), 44, 56);
  add("HARD: at least 99.5 % routed from l* on", rates("HARD", 6, 8), 99.5, 100);
  claims.push_back(all_at_least(
      table, "HARD: the pattern scores above every patch that is not a confuser in at least 99.5 % of samples", "clear",
      99.5, {{"data", data_name("HARD", samples)}}));
  return claims;
}

}  // namespace

Figure router_rates_figure() {
  Figure figure;
  figure.name = "pmoe/t4";
  figure.title = "trained routers send each class's pattern to its expert if l >= l* (lemmas 4.1, E.3)";
  figure.needs = "nothing";
  figure.duration = "smoke 3 s, small 1 min, paper 5 min, on 2 cores";
  figure.axes = {"data", "patches"};
  figure.measures = {{"rate", "test samples whose pattern is in the right top-l (%)", 1},
                     {"clear", "test samples whose pattern scores above all non-confusers (%)", 1}};
  figure.jobs = router_rates_jobs;
  figure.measure = router_rates_measure;
  figure.claims = router_rates_claims;
  FigureChart chart;
  chart.x = "patches";
  chart.y = "rate";
  chart.series = "data";
  figure.charts = {chart};
  figure.notes = {
      "Differs from the paper: 400 steps over several epochs with batches of min(samples, 256); lemma 4.1 makes one "
      "pass with T_r = 1 / (1 - delta_d) steps. The learning rate is 1/n.",
      "An independent implementation of the same formulas gave 51 % for l <= 5 and 100 % for l >= 6 from 200 samples "
      "on (HARD)."};
  return figure;
}

}  // namespace sparsight::pmoe
