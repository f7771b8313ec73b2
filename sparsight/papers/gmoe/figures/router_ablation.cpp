#include <algorithm>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/dg/ablation_run.h"
#include "sparsight/papers/gmoe/figures/protocol_data.h"
#include "sparsight/papers/gmoe/figures/protocol_figures.h"
#include "sparsight/papers/gmoe/figures/protocol_jobs.h"
#include "sparsight/report/format.h"
#include "sparsight/reproduce/figure_parts.h"
#include "sparsight/reproduce/margins.h"

namespace sparsight::gmoe {
namespace {

constexpr const char *kBaseline = "baseline", *kLinear = "router: linear", *kEveryTwo = "placement: every two";

struct AblationOptions {
  ProtocolOptions protocol;
  ProtocolVit vit;
  int64_t classes = 4, distractors = 0;
  void declare(OptionSet& set) {
    protocol.declare(set);
    vit.declare(set);
    set.integer("classes", &classes, {2, 12}, "classes of the generated images");
    set.integer("distractors", &distractors, {0, 32}, "pieces of other glyphs in each of them, at most");
  }
};

AblationOptions ablation_options(Scale scale) {
  AblationOptions options;
  options.protocol = {.steps = 501, .eval_every = 500, .images = 300, .batch = 12};
  options.vit.lr = 0.0005;
  if (scale == Scale::smoke) {
    options.protocol = {.steps = 2, .eval_every = 1, .images = 24, .batch = 4};
    options.vit = {.side = 16, .width = 16, .depth = 6, .heads = 2, .patch = 4};
    options.classes = 3;
  }
  if (scale == Scale::paper) {
    options.protocol = {.images = 3000};
    options.classes = 12, options.distractors = 4;
  }
  options.protocol.repeats.trials = by_scale<int64_t>(scale, 1, 3, 20);
  return options;
}

DgAblation make_ablation(const AblationOptions& options, int64_t seed, const FigureRun& run) {
  const std::string domains = glyph_domains({.classes = options.classes,
                                             .distractors = options.distractors,
                                             .side = options.vit.side,
                                             .images = options.protocol.images},
                                            run);
  ProtocolOptions protocol = options.protocol;
  protocol.images = 0;  // all that were generated
  DgAblation ablation{.run = protocol_run("folder", domains, protocol),
                      .factors = ablations_named({"router", "placement"}),
                      .trials = 1};
  use_vit(ablation.run, options.vit);
  ablation.first_trial = seed;
  return ablation;
}

Json measure_variant(const Json& job, const FigureRun& run) {
  const DgAblation ablation = make_ablation(chosen(ablation_options, run), job.at("seed"), run);
  const std::vector<AblationRow> rows = ablation_rows(ablation);
  const auto row = std::ranges::find(rows, job.at("variant").get<std::string>(), row_label);
  SPARSIGHT_CHECK(row != rows.end());
  const std::vector<DgRun> baseline =
      job.at("variant") == kBaseline ? std::vector<DgRun>() : ablation_runs(ablation, rows.front());
  return measure_against(ablation_runs(ablation, *row), baseline, glyph_environments(), job, run);
}

Claim baseline_is_better(const ResultTable& table, const std::string& text, const char* variant) {
  const auto average = [](const char* of) { return Json{{"variant", of}, {"environment", kAverage}}; };
  const auto less = table.mean(average(variant), "difference");
  return judge(table, text, {{row_difference(average(kBaseline), average(variant), "accuracy"), {}}},
               {.measured = less ? cat(signed_fixed(-*less, 1), " points on average") : ""});
}

}  // namespace

Figure router_ablation_figure() {
  Figure figure;
  figure.name = "gmoe/ablation";
  figure.title = "router and placement of GMoE on generated domains, each left out once";
  figure.needs = "nothing";
  figure.duration = "smoke 10 s, small 10 min, paper 3 days, on 2 cores";
  figure.axes = {"variant", "environment"};
  figure.measures = {{"accuracy", "accuracy on the domain left out (%)", 1, {"test_images"}},
                     {"difference", "minus the baseline (points)"},
                     {"train_accuracy", "on the images trained on (%)"},
                     {"active_parameters", "active parameters (thousands)"},
                     {"multiply_adds", "MACs of an image (millions)", 2}};
  figure.settings = make_settings(ablation_options);
  figure.jobs = [](const FigureRun& run) {
    return environment_jobs({{{"variant", kBaseline}}, {{"variant", kLinear}}, {{"variant", kEveryTwo}}},
                            glyph_environments(), chosen(ablation_options, run).protocol.repeats);
  };
  figure.measure = measure_variant;
  figure.expected_seconds = [](const Json& job, const FigureRun& run) {
    constexpr double kImagesPerSecond = 700;
    return protocol_seconds(job, chosen(ablation_options, run).protocol, glyph_environments().size(), kImagesPerSecond);
  };
  figure.claims = [](const ResultTable& table, const FigureRun&) {
    return std::vector<Claim>{
        baseline_is_better(table, "the cosine router is better than the linear one on the domain left out", kLinear),
        baseline_is_better(table, "MoE layers in the last two even blocks are better than in all even blocks",
                           kEveryTwo)};
  };
  FigureChart chart;
  chart.kind = FigureChart::Kind::bars;
  chart.x = "environment";
  chart.y = "accuracy";
  chart.series = "variant";
  figure.charts = {chart};
  figure.notes = {
      "Baseline: GMoE with a cosine router and MoE layers in its last two even blocks. Variants are those of sparsight "
      "dg ablate, of the same splits and seeds as the baseline: differences are of pairs.",
      "The domains are four styles of generated glyphs. The paper prefers the last two blocks and the cosine router, "
      "on photographs and from pretrained weights; its numbers cannot be compared with these."};
  figure.run_notes = [](const FigureRun& run) { return protocol_notes(chosen(ablation_options, run).protocol, run); };
  return figure;
}

}  // namespace sparsight::gmoe
