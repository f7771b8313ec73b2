// Figure 3 (middle and right): numbers of experts, of which k see each token.
#include <nlohmann/json.hpp>

#include "sparsight/papers/robust_moe/experiments/trial_claims.h"
#include "sparsight/papers/robust_moe/figures/attack_figures.h"
#include "sparsight/reproduce/figure_parts.h"
#include "sparsight/reproduce/margins.h"

namespace sparsight::robust_moe {
namespace {

struct ExpertNumberOptions : CellOptions {
  std::vector<int64_t> expert_numbers = {2, 4, 8, 16, 32};
  ExpertNumberOptions(Scale scale, VisionData data) : CellOptions(scale, data) {
    if (scale == Scale::smoke) expert_numbers = {2, 4};
  }
  void declare(OptionSet& set) {
    CellOptions::declare(set);
    set.integers("expert_numbers", &expert_numbers, {2, 1024}, "numbers of experts, ascending");
  }
};

std::vector<Json> expert_number_jobs(const FigureRun& run, VisionData data) {
  const ExpertNumberOptions options = chosen(cell_defaults<ExpertNumberOptions>(data), run);
  std::vector<Json> jobs;
  for (const int64_t experts : options.expert_numbers)
    for (const double epsilon : options.epsilons) jobs.push_back({{"experts", experts}, {"epsilon", epsilon}});
  return with_seeds(jobs, options.repeats);
}

Json measure_expert_number(const Json& job, const FigureRun& run, VisionData data) {
  const ExpertNumberOptions options = chosen(cell_defaults<ExpertNumberOptions>(data), run);
  const AttackCells cells(options, run);
  const VisionModel model{kMoeModel, kStandard, job.at("experts").get<int64_t>()};
  Json measured = cells.measure(model, job.at("seed").get<int64_t>(), {.epsilon = job.at("epsilon").get<double>()});
  measured.update(layer_summary(measured));
  const auto cost = [&](int64_t experts) { return vision_cost({kMoeModel, kStandard, experts}, options.vision, run); };
  const VisionCost own = cost(model.experts);
  measured["gflop"] = own.gflop;
  measured["gflop_share"] = 100 * own.gflop / cost(options.expert_numbers.front()).gflop;
  measured["parameters"] = own.parameters;
  return measured;
}

std::vector<std::string> expert_number_notes(const ExpertNumberOptions& options) {
  std::vector<std::string> notes = {
      "As in the authors' code a layer of two experts is trained with the balance loss of GShard (weight 0.01), the "
      "others with V-MoE's."};
  if (options.vision.k == 2)
    notes.push_back(
        "Two experts, two of which see each token: the layer is a smooth mixture, whose routing cannot change.");
  return notes;
}

Claim more_experts_help(const ResultTable& table) {
  const std::vector<Json> numbers = table.axis_values("experts");
  std::vector<Margin> margins;
  if (numbers.size() > 1)
    for (const Json& epsilon : table.axis_values("epsilon"))
      margins.push_back({row_difference({{"experts", numbers.front()}, {"epsilon", epsilon}},
                                        {{"experts", numbers.back()}, {"epsilon", epsilon}}, "robust_error"),
                         cat("at ", shown(epsilon))});
  return judge(table, "with the most experts the error is at most that with the fewest, at every epsilon", margins,
               {.ties = true});
}

}  // namespace

Figure expert_number_figure(VisionData data) {
  Figure figure = cell_figure("robust_moe/f3_experts", "error with different numbers of experts", data);
  figure.axes = {"experts", "epsilon"};
  figure.measures = {{"robust_error", "error under attack (%)", 1, {"images"}},
                     {"change", "change of the routing, mean of the layers", 3},
                     {"of_chance", "as a share of chance", 3},
                     {"gflop", "GFLOP of an image", 5},
                     {"gflop_share", "of those with the fewest experts (%)", 1},
                     {"parameters", "parameters (millions)", 3},
                     {"images", "images", 0}};
  for (const Measure& measure : drop_measures()) figure.measures.push_back(measure);
  set_options(figure, cell_defaults<ExpertNumberOptions>(data), expert_number_notes);
  figure.jobs = [data](const FigureRun& run) { return expert_number_jobs(run, data); };
  figure.measure = [data](const Json& job, const FigureRun& run) { return measure_expert_number(job, run, data); };
  figure.claims = [data](const ResultTable& table, const FigureRun& run) {
    std::vector<Claim> claims{
        every_trial_at_most(table, "the operations grow by at most 4 % with the experts", "gflop_share", 104),
        always_grows(table, "the parameters grow with the experts", "experts", "parameters"), more_experts_help(table)};
    if (chosen(cell_defaults<ExpertNumberOptions>(data), run).vision.k == 2)
      claims.push_back(every_trial_at_most(table,
                                           "with two experts, both of which see every token, the routing never changes",
                                           "change", 0, {{"experts", 2}}));
    return claims;
  };
  figure.charts = {{.x = "epsilon", .y = "robust_error", .series = "experts"}};
  return figure;
}

}  // namespace sparsight::robust_moe
