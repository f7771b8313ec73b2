// Error at one epsilon against the operations of a forward pass, for all models.
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/papers/robust_moe/figures/attack_figures.h"
#include "sparsight/reproduce/figure_parts.h"
#include "sparsight/reproduce/margins.h"

namespace sparsight::robust_moe {
namespace {

struct ErrorCostOptions : CellOptions {
  double epsilon = 2;
  ErrorCostOptions(Scale scale, VisionData data) : CellOptions(scale, data) {
    if (scale == Scale::smoke) epsilon = 8;
  }
  void declare(OptionSet& set) {
    CellOptions::declare(set);
    set.real("epsilon", &epsilon, {0, 255}, "radius of the attack, in 255ths");
  }
};

std::vector<Json> error_cost_jobs(const FigureRun& run, VisionData data) {
  const ErrorCostOptions options = chosen(cell_defaults<ErrorCostOptions>(data), run);
  std::vector<Json> jobs;
  for (const VisionModel& model : all_models(options)) {
    const VisionCost cost = vision_cost(model, options.vision, run);
    jobs.push_back({{"training", model.training}, {"model", model.name}, {"MFLOP", 1e3 * cost.gflop}});
  }
  return with_seeds(jobs, options.repeats);
}

Json measure_error_cost(const Json& job, const FigureRun& run, VisionData data) {
  const ErrorCostOptions options = chosen(cell_defaults<ErrorCostOptions>(data), run);
  const AttackCells cells(options, run);
  const VisionModel model{job.at("model"), job.at("training"), options.vision.experts};
  Json measured = cells.measure(model, job.at("seed").get<int64_t>(), {.epsilon = options.epsilon});
  measured.update(layer_summary(measured));
  const VisionCost cost = vision_cost(model, options.vision, run);
  measured["parameters"] = cost.parameters;
  const VisionModel dense{kDenseModel, kStandard};
  measured["cost_ratio"] = cost.gflop / vision_cost(dense, options.vision, run).gflop;
  return measured;
}

// The claim is judged over the rows with one training.
Claim costs_the_same(const ResultTable& table) {
  std::vector<double> found;
  for (const char* name : {kMoeModel, kWideModel})
    for (const ResultRow& row : table.rows)
      if (contains(row.settings, {{"model", name}, {"training", kStandard}}))
        if (const auto ratio = table.mean(row.settings, "cost_ratio")) found.push_back(*ratio);
  Claim claim{"the MoE costs as much as the dense model of its cost, to within 5 %", "not measured", std::nullopt,
              "operations of a forward pass"};
  if (found.size() != 2) return claim;
  claim.measured = cat(shown_number(found[0]), " and ", shown_number(found[1]), " times the dense model");
  claim.holds = found[0] < 1.05 * found[1] && found[1] < 1.05 * found[0];
  return claim;
}

}  // namespace

Figure error_cost_figure(VisionData data) {
  Figure figure = cell_figure("robust_moe/cost", "error at one epsilon against operations", data);
  figure.axes = {"training", "model", "MFLOP"};
  figure.measures = {{"robust_error", "error under attack (%)", 1, {"images"}},
                     {"clean_error", "error without attack (%)", 1, {"images"}},
                     {"cost_ratio", "operations / those of the dense model", 2},
                     {"parameters", "parameters (millions)", 3}};
  for (const Measure& measure : drop_measures()) figure.measures.push_back(measure);
  set_options(figure, cell_defaults<ErrorCostOptions>(data), [](const ErrorCostOptions& options) {
    return std::vector<std::string>{cat("The attack is PGD at ", shown_number(options.epsilon), "/255.")};
  });
  figure.jobs = [data](const FigureRun& run) { return error_cost_jobs(run, data); };
  figure.measure = [data](const Json& job, const FigureRun& run) { return measure_error_cost(job, run, data); };
  figure.claims = [](const ResultTable& table, const FigureRun&) { return std::vector<Claim>{costs_the_same(table)}; };
  figure.charts = {{.x = "MFLOP", .y = "robust_error", .series = "training", .label = "model"}};
  figure.notes.push_back(
      "Differs from the paper: it calls a V-MoE and the ViT that it is built on equally expensive; by its own numbers "
      "they cost 12.4 and 8.9 GFLOP.");
  return figure;
}

}  // namespace sparsight::robust_moe
