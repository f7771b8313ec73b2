// Figure 3 (left): attacks that also raise the router's balance loss.
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/papers/robust_moe/experiments/trial_claims.h"
#include "sparsight/papers/robust_moe/figures/attack_figures.h"

namespace sparsight::robust_moe {
namespace {

struct AttackedLosses {
  std::string name;
  double router_weight = 0, task_weight = 1;
};

// The weight of training, multiples of it, and nothing else: in training it is tiny next to the cross entropy.
const std::vector<AttackedLosses>& attacked_losses() {
  static const std::vector<AttackedLosses> all = {{"cross entropy"},           {"+ importance", 1},
                                                  {"+ 10 importance", 10},     {"+ 100 importance", 100},
                                                  {"+ 1000 importance", 1000}, {"importance alone", 1000, 0}};
  return all;
}

std::vector<Json> auxiliary_jobs(const FigureRun& run, VisionData data) {
  const CellOptions options = chosen(cell_defaults<CellOptions>(data), run);
  std::vector<Json> jobs;
  for (const AttackedLosses& losses : attacked_losses())
    for (const double epsilon : attacked_epsilons(options))
      jobs.push_back({{"attacked", losses.name}, {"epsilon", epsilon}});
  return with_seeds(jobs, options.repeats);
}

Json measure_auxiliary(const Json& job, const FigureRun& run, VisionData data) {
  const CellOptions options = chosen(cell_defaults<CellOptions>(data), run);
  const AttackCells cells(options, run);
  const VisionModel model{kMoeModel, kStandard, options.vision.experts};
  const double epsilon = job.at("epsilon");
  const auto seed = job.at("seed").get<int64_t>();
  const Json plain = cells.measure(model, seed, {.epsilon = epsilon});
  for (const AttackedLosses& losses : attacked_losses()) {
    if (job.at("attacked") != losses.name) continue;
    Json measured =
        losses.router_weight == 0
            ? plain
            : cells.measure(
                  model, seed,
                  {.epsilon = epsilon, .router_weight = losses.router_weight, .task_weight = losses.task_weight});
    measured.update(layer_summary(measured));
    measured["plain_error"] = nullptr;
    if (losses.router_weight == 1) add_measure(measured, "plain_error", plain, "robust_error");
    return measured;
  }
  SPARSIGHT_CHECK(false);
}

}  // namespace

Figure auxiliary_figure(VisionData data) {
  Figure figure = cell_figure("robust_moe/f3_aux", "error of the MoE under attacks on its balance loss too", data);
  figure.axes = {"attacked", "epsilon"};
  figure.measures = {{"robust_error", "error under attack (%)", 1, {"images"}},
                     {"plain_error", "error, cross entropy alone (%)", 1, {"images"}},
                     {"change", "change of the routing, mean of the layers", 3},
                     {"attacked_load_cv2", "squared CV of the load under attack", 3},
                     {"attacked_loss", "cross entropy under attack", 2},
                     {"images", "images", 0}};
  for (const Measure& measure : drop_measures()) figure.measures.push_back(measure);
  figure.jobs = [data](const FigureRun& run) { return auxiliary_jobs(run, data); };
  figure.measure = [data](const Json& job, const FigureRun& run) { return measure_auxiliary(job, run, data); };
  figure.claims = [](const ResultTable& table, const FigureRun&) {
    return std::vector<Claim>{never_apart(
        table, "attacking the balance loss with its weight of training changes the error by at most 2 standard errors",
        "robust_error", "plain_error", 2)};
  };
  FigureChart chart;
  chart.x = "epsilon";
  chart.y = "robust_error";
  chart.series = "attacked";
  figure.charts = {chart};
  chart.y = "change";
  figure.charts.push_back(chart);
  figure.notes.push_back(
      "The attacked loss is the importance loss, with a multiple of its weight 0.005 in training. The load loss exists "
      "only with router noise, which an attack does not have, as in the authors' code. A balance loss belongs to a "
      "batch, so these attacks treat the images of a batch together.");
  return figure;
}

}  // namespace sparsight::robust_moe
