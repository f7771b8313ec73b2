#include <algorithm>

#include "sparsight/core/error.h"
#include "sparsight/papers/pmoe/figures/descent.h"
#include "sparsight/papers/pmoe/figures/theory_figures.h"
#include "sparsight/reproduce/figure_claims.h"
#include "sparsight/reproduce/figure_parts.h"

namespace sparsight::pmoe {
namespace {

PatternRun descent_run(const std::string& model) {
  if (model == "CNN") return cnn_run();
  if (model == "joint, k = 8, l = 2") return joint_run(8, 2);
  for (const int64_t patches : {1, 2, 4, 8})
    if (model == cat("separate, l = ", patches)) return separate_run(patches);
  fail_usage("unknown model ", model);
}

std::vector<Json> descent_jobs(const FigureRun& run) {
  std::vector<Json> jobs;
  for (const std::string model :
       {"separate, l = 1", "separate, l = 2", "separate, l = 4", "separate, l = 8", "joint, k = 8, l = 2", "CNN"})
    jobs.push_back({{"model", model},
                    {"steps", by_scale<int64_t>(run, 10, 50, 100)},
                    {"batch", by_scale<int64_t>(run, 50, 200, 400)},
                    {"rate", model.starts_with("joint") ? 1e5 : 1e4}});
  return with_seeds(jobs, by_scale<int64_t>(run, 1, 3, 10));
}

Json descent_measure(const Json& settings, const FigureRun& run) {
  const auto seed = settings.at("seed").get<uint64_t>();
  const PatternModel model(easy_patterns(seed));
  const PatchSet test = sample_set(model, "test", by_scale<int64_t>(run, 400, 1000, 2000));
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

std::vector<Claim> descent_claims(const ResultTable& table, const FigureRun&) {
  std::vector<Claim> claims = {all_at_most(table, "the loss decreases in every step", "rising", 0)};
  Claim with_v{"the decrease per unit of learning rate gets smaller with v²", "", true};
  std::string fell;
  for (const ResultRow& row : table.rows) {
    const auto early = table.mean(row.settings, "early"), late = table.mean(row.settings, "late"),
               v_early = table.mean(row.settings, "v_early"), v_late = table.mean(row.settings, "v_late");
    if (!early || !late || !v_early || !v_late) continue;
    if ((*v_late < *v_early) != (*late < *early)) with_v.holds = false;
    fell += cat(fell.empty() ? "" : "; ", row.settings.at("model").get<std::string>(), ": v² falls to ",
                shown_number(*v_late / *v_early, 2), ", decrease to ", shown_number(*late / *early, 2),
                " of the initial value");
  }
  with_v.measured = fell;
  if (fell.empty()) with_v.holds = std::nullopt;
  claims.push_back(with_v);
  Claim with_l{"the decrease per unit of learning rate and v² gets smaller as l grows and is smallest for the CNN", "",
               true};
  double last = 1e9;
  for (const char* model : {"separate, l = 1", "separate, l = 2", "separate, l = 4", "separate, l = 8", "CNN"}) {
    const auto scaled = table.mean({{"model", model}}, "scaled");
    if (!scaled) continue;
    if (*scaled >= last) with_l.holds = false;
    last = *scaled;
    with_l.measured += cat(with_l.measured.empty() ? "" : ", ", shown_number(*scaled));
  }
  claims.push_back(with_l);
  return claims;
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
      "The loss of joint training still increases in a third of the steps, with batches of 2000 as with 200: experts "
      "change their other patches from step to step, and the gradient does not account for that."};
  return figure;
}

}  // namespace sparsight::pmoe
