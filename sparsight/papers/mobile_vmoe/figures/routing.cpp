// Figure 3e: how experts are chosen, with k = 2.
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/papers/mobile_vmoe/figures/mobile_figures.h"
#include "sparsight/reproduce/figure_parts.h"

namespace sparsight::mobile_vmoe {
namespace {

MobileOptions routing_options(Scale scale) {
  MobileOptions options = mobile_options(scale);
  options.k = 2;  // as in the paper's figure
  return options;
}

std::vector<Json> routing_jobs(const FigureRun& run) {
  std::vector<Json> jobs;
  for (const char* routing : {kDense, kImages, kRandom, kSemantic, kTokens}) jobs.push_back({{"routing", routing}});
  return with_seeds(jobs, chosen(routing_options, run).repeats);
}

MobileRow routing_row(const Json& job, const MobileOptions& options) {
  const MobileModel dense = mobile_model(options, kDense);
  if (job.at("routing") == kDense) return {dense};
  return {mobile_model(options, job.at("routing")), dense};
}

Claim ordered(const ResultTable& table, const std::string& text, const char* better, const char* worse, bool ties) {
  return judge(table, text, {{between("routing", better, worse, "accuracy"), {}}}, {.ties = ties, .decimals = 2});
}

std::vector<Claim> routing_claims(const ResultTable& table, const FigureRun&) {
  return {
      ordered(table, "super-classes are better than end-to-end routing of images", kSemantic, kImages, false),
      ordered(table, "semantic super-classes are at least as good as random ones", kSemantic, kRandom, true),
      ordered(table, "super-classes are better than the dense model of the same operations", kSemantic, kDense, false),
      ordered(table, "end-to-end routing of tokens is better still", kTokens, kSemantic, false),
      judge(table, "but an image then uses more parameters", {{between("routing", kTokens, kSemantic, "touched")}},
            {.unit = "thousand"})};
}

}  // namespace

Figure routing_figure() {
  Figure figure = mobile_figure("mobile_vmoe/routing", "ways of choosing experts");
  figure.duration = "smoke 10 s, small 2 h, paper weeks, on 2 cores; less where other figures have trained the models";
  figure.axes = {"routing"};
  set_options(figure, routing_options);
  figure.jobs = routing_jobs;
  measure_rows(figure, routing_options, routing_row);
  figure.claims = routing_claims;
  FigureChart chart;
  chart.kind = FigureChart::Kind::bars;
  chart.x = "routing";
  chart.y = "accuracy";
  figure.charts = {chart};
  chart.y = "touched";
  figure.charts.push_back(chart);
  figure.notes.push_back(
      "Gains over the dense model of the same operations with DeiT-Ti/16 on ImageNet-1k, by a secondary summary of the "
      "paper: end-to-end per image 1.87 points, super-classes 2.72, end-to-end per token 3.15; an image uses 6.31 "
      "million parameters per image and up to 11.05 per token. Random super-classes: each seed has a division of its "
      "own into groups of equal size. End to end: V-MoE's importance and load loss with 0.005 each, router noise of "
      "1/E in training, no capacity limit.");
  return figure;
}

}  // namespace sparsight::mobile_vmoe
