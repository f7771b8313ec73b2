#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/data/domainbed/domain_sets.h"
#include "sparsight/dg/ablations.h"
#include "sparsight/dg/sweep.h"
#include "sparsight/papers/gmoe/figures/protocol_data.h"
#include "sparsight/papers/gmoe/figures/protocol_figures.h"
#include "sparsight/papers/gmoe/figures/protocol_jobs.h"
#include "sparsight/report/format.h"
#include "sparsight/reproduce/figure_parts.h"
#include "sparsight/reproduce/margins.h"

namespace sparsight::gmoe {
namespace {

constexpr const char *kDense = "dense", *kGmoe = "GMoE";
constexpr int64_t kPacsClasses = 7, kPacsSubstitute = 60;
const DataChoice kPacs{"pacs", "glyph domains for PACS"};

struct PacsOptions {
  ProtocolOptions protocol;
  ProtocolVit vit;
  void declare(OptionSet& set) {
    protocol.declare(set);
    vit.declare(set);
  }
};

PacsOptions pacs_options(Scale scale) {
  PacsOptions options;
  options.protocol = {.steps = 401, .eval_every = 200, .images = 1000, .batch = 16};
  options.vit = {.side = 112, .width = 128, .depth = 6, .heads = 4, .patch = 16, .lr = 0.0003};
  if (scale == Scale::smoke) {
    options.protocol = {.steps = 2, .eval_every = 1, .images = 20, .batch = 4};
    options.vit = {.side = 32, .width = 16, .depth = 4, .heads = 2, .patch = 8};
  }
  if (scale == Scale::paper) {
    options.protocol = {};
    options.vit = {.side = 224, .width = 384, .depth = 12, .heads = 6, .patch = 16, .lr = 0.0003};
  }
  options.protocol.repeats.trials = by_scale<int64_t>(scale, 1, 2, 3);
  return options;
}

std::vector<std::string> list_environments(const FigureRun& run) {
  return run.data.empty() ? glyph_environments() : domain_set("pacs").environment_titles;
}

std::vector<DgRun> make_runs(const std::string& model, const Json& job, const PacsOptions& options,
                             const FigureRun& run) {
  const bool real = !run.data.empty();
  const std::string root =
      real ? real_folder(kPacs, run)
           : glyph_domains({.classes = kPacsClasses, .side = options.vit.side, .images = kPacsSubstitute}, run);
  DgSweep sweep{.run = protocol_run(real ? "pacs" : "folder", root, options.protocol),
                .trials = 1,
                .hparams = 1,
                .pairs = false,
                .models = {model == kGmoe ? "gmoe" : "vit"}};
  sweep.first_trial = job.at("seed");
  use_vit(sweep.run, options.vit);
  if (model == kGmoe) sweep.run.overrides.push_back(blocks_setting(last_two_blocks(options.vit.depth)));
  return sweep_runs(sweep);
}

Json measure_pacs(const Json& job, const FigureRun& run) {
  const PacsOptions options = chosen(pacs_options, run);
  const std::string model = job.at("model");
  const std::vector<DgRun> baseline = model == kDense ? std::vector<DgRun>() : make_runs(kDense, job, options, run);
  return measure_against(make_runs(model, job, options, run), baseline, list_environments(run), job, run);
}

std::vector<Claim> pacs_claims(const ResultTable& table, const FigureRun&) {
  const Json gmoe = {{"model", kGmoe}, {"environment", kAverage}},
             dense = {{"model", kDense}, {"environment", kAverage}};
  const auto difference = table.mean(gmoe, "difference");
  return {judge(table, "GMoE is at least as accurate as its dense counterpart on the domain left out",
                {{row_difference(gmoe, dense, "accuracy"), {}}},
                {.ties = true, .measured = difference ? cat(signed_fixed(*difference, 1), " points on average") : ""})};
}

}  // namespace

Figure pacs_figure() {
  Figure figure;
  figure.name = "gmoe/pacs";
  figure.title = "GMoE and a dense ViT on PACS from scratch, each domain left out once";
  figure.needs = "PACS";
  figure.duration = "smoke 10 s, small 20 min, paper weeks, on 2 cores";
  figure.axes = {"model", "environment"};
  figure.measures = {{"accuracy", "accuracy on the domain left out (%)", 1, {"test_images"}},
                     {"difference", "minus dense (points)"},
                     {"train_accuracy", "on the images trained on (%)"},
                     {"multiply_adds", "active MACs of an image (millions)", 2}};
  figure.data = {kPacs};
  figure.settings = make_settings(pacs_options);
  figure.jobs = [](const FigureRun& run) {
    return environment_jobs({{{"model", kDense}}, {{"model", kGmoe}}}, list_environments(run),
                            chosen(pacs_options, run).protocol.repeats);
  };
  figure.measure = measure_pacs;
  figure.expected_seconds = [](const Json& job, const FigureRun& run) {
    constexpr double kImagesPerSecond = 150;  // at scale small
    return protocol_seconds(job, chosen(pacs_options, run).protocol, list_environments(run).size(), kImagesPerSecond);
  };
  figure.claims = pacs_claims;
  FigureChart chart;
  chart.kind = FigureChart::Kind::bars;
  chart.x = "environment";
  chart.y = "accuracy";
  chart.series = "model";
  figure.charts = {chart};
  figure.notes = {
      "ERM with a ViT, and with the same ViT as GMoE: 6 experts in the last two even blocks, one for each token, "
      "cosine router, with dropout of 0.1 inside the experts, as its authors have it. Both have a drop path of 0.1, "
      "the "
      "same splits and seeds, and the same active operations but for the routers.",
      "Differs from the paper: random weights instead of ImageNet's, a smaller model, smaller images, fewer updates. "
      "Its own table is that of sparsight dg sweep with pretrained weights."};
  figure.run_notes = [](const FigureRun& run) { return protocol_notes(chosen(pacs_options, run).protocol, run); };
  return figure;
}

}  // namespace sparsight::gmoe
