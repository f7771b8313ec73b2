// Every cell of {model, training, attack, attacked losses, epsilon} as a row with all measures.
#include <nlohmann/json.hpp>

#include "sparsight/papers/robust_moe/experiments/trial_claims.h"
#include "sparsight/papers/robust_moe/figures/attack_figures.h"

namespace sparsight::robust_moe {
namespace {

constexpr const char *kNoAux = "cross entropy", *kAux = "cross entropy + importance";

std::vector<Json> sweep_jobs(const FigureRun& run) {
  const CellOptions options = chosen(cell_options, run);
  std::vector<Json> jobs;
  for (const VisionModel& model : all_models(options))
    for (const std::string attack : {kPgd, kPublishedPgd, kApgd})
      for (const std::string losses : {kNoAux, kAux}) {
        if (losses == kAux && (model.name != kVmoe || attack == kPublishedPgd)) continue;
        for (const double epsilon : options.epsilons)
          jobs.push_back({{"model", model.name},
                          {"training", model.training},
                          {"attack", attack},
                          {"attacked", losses},
                          {"epsilon", epsilon}});
      }
  return with_seeds(jobs, options.repeats);
}

Json measure_sweep(const Json& job, const FigureRun& run, VisionData data) {
  const CellOptions options = chosen(cell_options, run);
  const AttackCells cells(options, data, run);
  const VisionModel model{job.at("model"), job.at("training"), options.vision.experts};
  const CellAttack attack{
      .name = job.at("attack"), .epsilon = job.at("epsilon"), .router_weight = job.at("attacked") == kAux ? 1.0 : 0.0};
  Json measured = cells.measure(model, job.at("seed").get<int64_t>(), attack);
  measured.update(layer_summary(measured));
  measured["gflop"] = vision_cost(model, options.vision, data, run).gflop;
  return measured;
}

}  // namespace

Figure sweep_figure(VisionData data) {
  Figure figure = cell_figure("robust_moe/sweep", "every model, attack and epsilon with all measures", data);
  figure.axes = {"model", "training", "attack", "attacked", "epsilon"};
  figure.measures = {{"clean_error", "error without attack (%)"},
                     {"robust_error", "error under attack (%)"},
                     {"robust_low", "its Wilson interval from"},
                     {"robust_high", "to"},
                     {"success", "success of the attack (%)"},
                     {"changed", "other prediction (%)"},
                     {"clean_loss", "cross entropy without attack", 3},
                     {"attacked_loss", "under attack", 3},
                     {"change", "change of the routing, mean of the layers", 3},
                     {"change_first", "of the first layer", 3},
                     {"change_last", "of the last layer", 3},
                     {"change_chosen", "before capacity", 3},
                     {"change_public", "as the authors' code counts", 3},
                     {"of_chance", "as a share of chance", 3},
                     {"dropped", "dropped assignments", 3},
                     {"entropy", "usage entropy / ln E", 3},
                     {"attacked_entropy", "under attack", 3},
                     {"load_cv2", "squared CV of the load", 3},
                     {"attacked_load_cv2", "under attack", 3},
                     {"redundancy", "distance of outputs where experts changed", 3},
                     {"redundancy_random", "with random experts", 3},
                     {"queries", "queries per image", 0},
                     {"gradients", "gradients per image", 0},
                     {"largest", "largest perturbation (255ths)", 3},
                     {"gflop", "GFLOP of an image", 5},
                     {"images", "images", 0}};
  figure.jobs = sweep_jobs;
  figure.measure = [data](const Json& job, const FigureRun& run) { return measure_sweep(job, run, data); };
  figure.claims = [](const ResultTable& table, const FigureRun&) {
    return std::vector<Claim>{
        never_below(table, "the error under attack is at least that without it", {}, "clean_error", 2)};
  };
  return figure;
}

}  // namespace sparsight::robust_moe
