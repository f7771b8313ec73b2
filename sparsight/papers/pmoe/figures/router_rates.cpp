#include "sparsight/core/error.h"
#include "sparsight/papers/pmoe/figures/theory_figures.h"
#include "sparsight/papers/pmoe/theory/router_training.h"
#include "sparsight/reproduce/figure_claims.h"
#include "sparsight/reproduce/figure_parts.h"
#include "sparsight/reproduce/figure_settings.h"

namespace sparsight::pmoe {
namespace {

struct RouterRatesOptions {
  Repeats repeats;
  std::vector<int64_t> samples;
  int64_t test = 1000;
  RouterTrainingOptions training = {};
  void declare(OptionSet& set) {
    repeats.declare(set);
    set.integer("steps", &training.steps, {0, 1000000}, "steps of SGD");
    set.integer("batch", &training.batch, {1, 1000000}, "samples per step, at most all");
    set.real("lr", &training.rate, {0, 1e6}, "learning rate; 0: 1/n");
    set.integers("samples", &samples, {2, 1000000}, "numbers of training samples, ascending");
    set.integer("test", &test, {2, 1000000}, "test samples");
  }
};

RouterRatesOptions router_rates_options(Scale scale) {
  return {{by_scale<int64_t>(scale, 1, 3, 10)},
          by_scale<std::vector<int64_t>>(scale, {800}, {100, 200, 800}, {50, 100, 200, 400, 800, 1600}),
          by_scale<int64_t>(scale, 500, 1000, 1000)};
}

std::string data_name(const char* profile, int64_t samples) { return cat(profile, ", ", samples, " samples"); }

std::vector<Json> router_rates_jobs(const FigureRun& run) {
  const RouterRatesOptions options = chosen(router_rates_options, run);
  std::vector<Json> jobs;
  for (const char* profile : {"EASY", "HARD"})
    for (const int64_t samples : options.samples)
      for (int64_t patches = 1; patches <= 8; ++patches)
        jobs.push_back({{"data", data_name(profile, samples)},
                        {"patches", patches},
                        {"profile", profile},
                        {"samples", samples},
                        {"test", options.test},
                        {"steps", options.training.steps},
                        {"batch", options.training.batch},
                        {"lr", options.training.rate}});
  return with_seeds(jobs, options.repeats);
}

Json router_rates_measure(const Json& settings, const FigureRun&) {
  RouterTrainingOptions training;
  training.seed = settings.at("seed").get<uint64_t>();
  training.steps = settings.at("steps");
  training.batch = settings.at("batch");
  training.rate = settings.at("lr");
  const PatternModelOptions options =
      settings.at("profile") == "HARD" ? hard_patterns(training.seed) : easy_patterns(training.seed);
  const PatternModel model(options);
  const at::Tensor routers = train_routers(model.sample("train", settings.at("samples").get<int64_t>()), training);
  const PatternSamples test = model.sample("test", settings.at("test").get<int64_t>());
  return Json{{"rate", 100 * routed_share(pattern_ranks(test, routers), settings.at("patches").get<int64_t>())},
              {"clear", 100 * clear_share(test, routers, model.patterns(), options.separation)}};
}

// The rate with each number of patches from `first` to `last` lies within the range.
Claim rates_within(const ResultTable& table, const std::string& text, const std::string& data, int64_t first,
                   int64_t last, Interval range) {
  std::vector<Margin> margins;
  for (int64_t l = first; l <= last; ++l) {
    const Json cell = {{"data", data}, {"patches", l}};
    margins.push_back({above(cell, "rate", range.low), cat("above the lower end, l = ", l)});
    if (range.high < 100) margins.push_back({below(cell, "rate", range.high), cat("below the upper end, l = ", l)});
  }
  return judge(table, cat(text, ", ", data), margins, {.ties = true, .decimals = 2});
}

std::vector<Claim> router_rates_claims(const ResultTable& table, const FigureRun& run) {
  const int64_t samples = chosen(router_rates_options, run).samples.back();
  const std::string easy = data_name("EASY", samples), hard = data_name("HARD", samples);
  return {rates_within(table, "l* = 1: at least 99 % routed for every l", easy, 1, 8, {99, 100}),
          rates_within(table, "l* = 6: chance level below l*, 44 to 56 % routed", hard, 1, 5, {44, 56}),
          rates_within(table, "at least 99.5 % routed from l* on", hard, 6, 8, {99.5, 100}),
          all_at_least(
              table, "HARD: the pattern scores above every patch that is not a confuser in at least 99.5 % of samples",
              "clear", 99.5, {{"data", hard}})};
}

}  // namespace

Figure router_rates_figure() {
  Figure figure;
  figure.name = "pmoe/t4";
  figure.title = "trained routers send each class's pattern to its expert if l >= l* (lemmas 4.1, E.3)";
  figure.needs = "nothing";
  figure.duration = "smoke 3 s, small 1 min, paper 5 min, on 2 cores";
  figure.axes = {"data", "patches"};
  figure.measures = {{"rate", "test samples whose pattern is in the right top-l (%)", 1, {"test", true}},
                     {"clear", "test samples whose pattern scores above all non-confusers (%)", 1, {"test", true}}};
  figure.settings = make_settings(router_rates_options);
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
