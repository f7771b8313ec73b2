// Error under PGD through all of the MoE, its experts or its router alone, as Zhang et al. 2023, "Robust
// Mixture-of-Expert Training for Convolutional Neural Networks", arXiv:2308.10110, take robust accuracy apart.
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/papers/robust_moe/experiments/trial_claims.h"
#include "sparsight/papers/robust_moe/figures/attack_figures.h"

namespace sparsight::robust_moe {
namespace {

struct AttackedPart {
  const char *name, *gradient;
};
constexpr AttackedPart kParts[] = {{"all", ""}, {"experts", "experts"}, {"router", "router"}};

// "experts", "experts, adversarial"
std::string part_curve(const AttackedPart& part, const std::string& training) {
  return training == kStandard ? part.name : cat(part.name, ", ", training);
}

std::vector<Json> part_jobs(const FigureRun& run, VisionData data) {
  const CellOptions options = chosen(cell_defaults<CellOptions>(data), run);
  std::vector<Json> jobs;
  for (const char* training : {kStandard, kAdversarial})
    for (const AttackedPart& part : kParts)
      for (const double epsilon : attacked_epsilons(options))
        jobs.push_back({{"attacked", part_curve(part, training)}, {"epsilon", epsilon}});
  return with_seeds(jobs, options.repeats);
}

Json measure_part(const Json& job, const FigureRun& run, VisionData data) {
  const CellOptions options = chosen(cell_defaults<CellOptions>(data), run);
  const AttackCells cells(options, run);
  const double epsilon = job.at("epsilon");
  const auto seed = job.at("seed").get<int64_t>();
  for (const char* training : {kStandard, kAdversarial})
    for (const AttackedPart& part : kParts) {
      if (job.at("attacked") != part_curve(part, training)) continue;
      const VisionModel model{kMoeModel, training, options.vision.experts};
      Json measured = cells.measure(model, seed, {.epsilon = epsilon, .gradient = part.gradient});
      measured.update(layer_summary(measured));
      add_measure(measured, "whole_error", cells.measure(model, seed, {.epsilon = epsilon}), "robust_error");
      return measured;
    }
  SPARSIGHT_CHECK(false);
}

}  // namespace

Figure attacked_parts_figure(VisionData data) {
  Figure figure =
      cell_figure("robust_moe/parts", "error of the MoE under attacks on its experts or router alone", data);
  figure.axes = {"attacked", "epsilon"};
  figure.measures = {{"robust_error", "error under attack (%)", 1, {"images"}},
                     {"whole_error", "error, all attacked (%)", 1, {"images"}},
                     {"clean_error", "error without attack (%)", 1, {"images"}},
                     {"change", "change of the routing, mean of the layers", 3},
                     {"images", "images", 0}};
  figure.jobs = [data](const FigureRun& run) { return part_jobs(run, data); };
  figure.measure = [data](const Json& job, const FigureRun& run) { return measure_part(job, run, data); };
  figure.claims = [](const ResultTable& table, const FigureRun&) {
    return std::vector<Claim>{never_below(table, "the attack on all parts finds at least the errors of those on one",
                                          "whole_error", "robust_error", 2)};
  };
  figure.charts = {{.x = "epsilon", .y = "robust_error", .series = "attacked"}};
  figure.notes.push_back(
      "The paper has no such experiment. Experts: the gradient of the loss with the routing of the clean image; "
      "router: "
      "the gradient through the gates alone. 100 % minus the error is what Zhang et al. 2023 call RA, RA-E and RA-R. "
      "Losses and verdicts are those of the sparse model itself.");
  return figure;
}

}  // namespace sparsight::robust_moe
