#include <algorithm>
#include <cmath>

#include "sparsight/core/error.h"
#include "sparsight/papers/pmoe/figures/descent.h"
#include "sparsight/papers/pmoe/figures/theory_figures.h"
#include "sparsight/reproduce/figure_parts.h"
#include "sparsight/reproduce/margins.h"

namespace sparsight::pmoe {
namespace {

PatternRun descent_run(const std::string& model) {
  if (model == "CNN") return cnn_run();
  if (model == "joint, k = 8, l = 2") return joint_run(8, 2);
  for (const int64_t patches : {1, 2, 4, 8})
    if (model == cat("separate, l = ", patches)) return separate_run(patches);
  fail_usage("unknown model ", model);
}

struct DescentOptions {
  Repeats repeats;
  int64_t steps = 1, batch = 1, test = 1;
  double rate = 1e4, joint_rate = 1e5;
  void declare(OptionSet& set) {
    repeats.declare(set);
    set.integer("steps", &steps, {5, 100000}, "steps of SGD");
    set.integer("batch", &batch, {1, 100000}, "new samples in each step");
    set.integer("test", &test, {2, 1000000}, "samples that the loss is measured on");
    set.real("rate", &rate, {0, 1e12}, "the lemmas' learning rate is multiplied by this");
    set.real("joint_rate", &joint_rate, {0, 1e12}, "the same for joint training");
  }
};

DescentOptions descent_options(Scale scale) {
  return {{by_scale<int64_t>(scale, 1, 3, 10)},
          by_scale<int64_t>(scale, 10, 50, 100),
          by_scale<int64_t>(scale, 50, 200, 400),
          by_scale<int64_t>(scale, 400, 1000, 2000)};
}

std::vector<Json> descent_jobs(const FigureRun& run) {
  const DescentOptions options = chosen(descent_options, run);
  std::vector<Json> jobs;
  for (const std::string model :
       {"separate, l = 1", "separate, l = 2", "separate, l = 4", "separate, l = 8", "joint, k = 8, l = 2", "CNN"})
    jobs.push_back({{"model", model},
                    {"steps", options.steps},
                    {"batch", options.batch},
                    {"test", options.test},
                    {"rate", model.starts_with("joint") ? options.joint_rate : options.rate}});
  return with_seeds(jobs, options.repeats);
}

Json descent_measure(const Json& settings, const FigureRun&) {
  const auto seed = settings.at("seed").get<uint64_t>();
  const PatternModel model(easy_patterns(seed));
  const PatchSet test = sample_set(model, "test", settings.at("test").get<int64_t>());
  const std::vector<DescentStep> steps =
      descent(descent_run(settings.at("model").get<std::string>()), model, test, settings.at("steps").get<int64_t>(),
              settings.at("batch").get<int64_t>(), settings.at("rate").get<double>(), seed);
  const size_t fifth = std::max<size_t>(1, steps.size() / 5);
  double rising = 0, early = 0, late = 0, scaled = 0, v_early = 0, v_late = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    rising += steps[i].drop <= 0;
    if (i < fifth) {
      early += steps[i].drop / steps[i].lr;
      scaled += steps[i].drop / (steps[i].lr * steps[i].v_squared);
      v_early += steps[i].v_squared;
    }
    if (i + fifth >= steps.size()) late += steps[i].drop / steps[i].lr, v_late += steps[i].v_squared;
  }
  const auto part = static_cast<double>(fifth);
  return Json{{"rising", 100 * rising / static_cast<double>(steps.size())},
              {"early", early / part},
              {"late", late / part},
              {"scaled", scaled / part},
              {"v_early", v_early / part},
              {"v_late", v_late / part}};
}

// v² and the decrease both fall, or both rise, from the first to the last fifth of the steps.
Claim with_v_squared(const ResultTable& table) {
  std::vector<Margin> margins;
  for (const ResultRow& row : table.rows)
    margins.push_back({[cell = row.settings](const SeedMeans& mean) -> std::optional<double> {
                         const auto early = mean(cell, "early"), late = mean(cell, "late"),
                                    v_early = mean(cell, "v_early"), v_late = mean(cell, "v_late");
                         if (!early || !late || !v_early || !v_late || *early == 0) return std::nullopt;
                         return (*v_late < *v_early ? 1 : -1) * 100 * (*early - *late) / std::abs(*early);
                       },
                       row.settings.at("model").get<std::string>()});
  return judge(table, "the decrease per unit of learning rate gets smaller with v²", margins,
               {.unit = "% of the initial decrease"});
}

Claim with_patches_taken(const ResultTable& table) {
  const std::vector<std::string> models = {"separate, l = 1", "separate, l = 2", "separate, l = 4", "separate, l = 8",
                                           "CNN"};
  std::vector<Margin> margins;
  for (size_t i = 0; i + 1 < models.size(); ++i)
    margins.push_back({row_difference({{"model", models[i]}}, {{"model", models[i + 1]}}, "scaled"),
                       cat(models[i], " against ", models[i + 1])});
  return judge(table,
               "the decrease per unit of learning rate and v² gets smaller as l grows and is smallest for the CNN",
               margins, {.unit = "", .decimals = 3});
}

std::vector<Claim> descent_claims(const ResultTable& table, const FigureRun&) {
  return {every_trial_at_most(table, "the loss decreases in every step", "rising", 0), with_v_squared(table),
          with_patches_taken(table)};
}

}  // namespace

Figure descent_figure() {
  Figure figure;
  figure.name = "pmoe/t8";
  figure.title = "each step decreases the expected loss (lemmas G.4, H.4, I.4), EASY profile";
  figure.needs = "nothing";
  figure.duration = "smoke 3 s, small 40 s, paper 5 min, on 2 cores";
  figure.axes = {"model"};
  figure.measures = {{"rising", "steps in which the loss increased (%)", 1},
                     {"early", "decrease per step and unit of learning rate, first fifth of the steps", 4},
                     {"late", "the same, last fifth", 4},
                     {"scaled", "decrease per unit of learning rate and v², first fifth", 3},
                     {"v_early", "v² in the first fifth", 4},
                     {"v_late", "v² in the last fifth", 4}};
  figure.settings = make_settings(descent_options);
  figure.jobs = descent_jobs;
  figure.measure = descent_measure;
  figure.claims = descent_claims;
  FigureChart chart;
  chart.kind = FigureChart::Kind::bars;
  chart.x = "model";
  chart.y = "scaled";
  figure.charts = {chart};
  figure.notes = {
      "Differs from the paper: the learning rate is the lemmas' gamma³ v² / (m l²) times 10,000 (joint: gamma³ v² l³ / "
      "(m k²) times 100,000), because the effect of a step would otherwise be lost in fp32.",
      "Differs from the paper: the batch size is fixed; the lemmas' l⁴ / (gamma⁶ v⁴) is more than 10 million samples.",
      "Joint training is measured once assumption 4.4 holds, as lemma H.4 requires: after a few epochs on 200 samples, "
      "when 95 % of the patterns get an expert's largest gate.",
      "The loss of joint training still increases in a third of the steps: experts change their other patches from "
      "step "
      "to step, and the gradient does not account for that. At a hundredth of this rate (joint_rate=1000) and batches "
      "of "
      "2000 it hardly does."};
  return figure;
}

}  // namespace sparsight::pmoe
