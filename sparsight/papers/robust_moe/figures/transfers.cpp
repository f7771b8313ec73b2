// Adversarial images of the dense models and the mixture of experts, evaluated on each other.
#include <nlohmann/json.hpp>

#include "sparsight/papers/robust_moe/experiments/trial_claims.h"
#include "sparsight/papers/robust_moe/figures/attack_figures.h"
#include "sparsight/reproduce/margins.h"

namespace sparsight::robust_moe {
namespace {

constexpr const char* kTransferred[] = {kDenseModel, kMoeModel, kWideModel};

std::vector<Json> transfer_jobs(const FigureRun& run, VisionData data) {
  const CellOptions options = chosen(cell_defaults<CellOptions>(data), run);
  std::vector<Json> jobs;
  for (const char* source : kTransferred)
    for (const char* target : kTransferred)
      for (const double epsilon : attacked_epsilons(options))
        jobs.push_back({{"source", source}, {"target", target}, {"epsilon", epsilon}});
  return with_seeds(jobs, options.repeats);
}

Json measure_transfers(const Json& job, const FigureRun& run, VisionData data) {
  const CellOptions options = chosen(cell_defaults<CellOptions>(data), run);
  const AttackCells cells(options, run);
  const auto seed = job.at("seed").get<int64_t>();
  const CellAttack attack{.epsilon = job.at("epsilon")};
  const auto model = [&](const char* axis) { return VisionModel{job.at(axis), kStandard, options.vision.experts}; };
  const VisionModel source = model("source"), target = model("target");
  Json measured = cells.transfer(source, target, seed, attack);
  if (job.at("source") == job.at("target")) return measured;
  add_measure(measured, "own_error", cells.measure(target, seed, attack), "robust_error");
  measured["raised"] = measured.at("robust_error").get<double>() - measured.at("clean_error").get<double>();
  return measured;
}

// The mean over pairs of models and over epsilons.
std::optional<double> mean_success(const SeedMeans& mean,
                                   const std::vector<std::pair<const char*, const char*>>& pairs) {
  double sum = 0;
  int64_t count = 0;
  for (const auto& [source, target] : pairs)
    for (const Json& epsilon : mean.table().axis_values("epsilon")) {
      const auto found = mean({{"source", source}, {"target", target}, {"epsilon", epsilon}}, "success");
      if (!found) return std::nullopt;
      sum += *found, ++count;
    }
  return count > 0 ? std::optional(sum / static_cast<double>(count)) : std::nullopt;
}

Claim transfers_raise_errors(const ResultTable& table) {
  std::vector<Margin> margins;
  for (const ResultRow& row : table.rows) {
    const Json& at = row.settings;
    if (at.at("source") == at.at("target")) continue;
    margins.push_back(
        {above(at, "raised", 0), cat("from ", at.at("source").get<std::string>(), " to ",
                                     at.at("target").get<std::string>(), " at ", shown(at.at("epsilon")))});
  }
  return judge(table, "adversarial images of each model raise the error of each other one, at every epsilon", margins);
}

Claim dense_models_share_more(const ResultTable& table) {
  const Statistic more = [](const SeedMeans& mean) -> std::optional<double> {
    const auto dense = mean_success(mean, {{kDenseModel, kWideModel}, {kWideModel, kDenseModel}});
    const auto mixed = mean_success(
        mean, {{kDenseModel, kMoeModel}, {kMoeModel, kDenseModel}, {kWideModel, kMoeModel}, {kMoeModel, kWideModel}});
    return dense && mixed ? std::optional(*dense - *mixed) : std::nullopt;
  };
  return judge(table,
               "attacks succeed less often between a dense model and the MoE than between the dense ones, on average",
               {{more}});
}

}  // namespace

Figure transfer_figure(VisionData data) {
  Figure figure = cell_figure("robust_moe/transfer", "adversarial images of each model on the others", data);
  figure.axes = {"source", "target", "epsilon"};
  figure.measures = {{"robust_error", "error of the target (%)", 1, {"images"}},
                     {"robust_low", "its Wilson interval from"},
                     {"robust_high", "to"},
                     {"clean_error", "error without attack (%)", 1, {"images"}},
                     {"raised", "more (points)", 1, {"images"}},
                     {"own_error", "error under an attack on itself (%)", 1, {"images"}},
                     {"success", "success (%)", 1, {"clean_correct"}},
                     {"images", "images", 0}};
  figure.jobs = [data](const FigureRun& run) { return transfer_jobs(run, data); };
  figure.measure = [data](const Json& job, const FigureRun& run) { return measure_transfers(job, run, data); };
  figure.claims = [](const ResultTable& table, const FigureRun&) {
    return std::vector<Claim>{
        never_below(table, "an attack on the model itself finds at least the errors of transferred images", "own_error",
                    "robust_error", 2),
        transfers_raise_errors(table), dense_models_share_more(table)};
  };
  figure.notes.push_back(
      "The paper has no such experiment. The source gives the gradients of PGD, the target classifies the images; both "
      "are trained as usual, from the same seed. Success: of the images that the target classifies correctly, those "
      "that it does not under attack. Wilson's 95 % interval is that of one seed's images; the table has the mean of "
      "its ends.");
  return figure;
}

}  // namespace sparsight::robust_moe
