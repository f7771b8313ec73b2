// Every cell of {model, training, attack, attacked losses, epsilon} as a row with all measures, and the MoE under PGD
// with other numbers of experts for each token and other capacities than in training.
#include <nlohmann/json.hpp>

#include "sparsight/papers/robust_moe/experiments/trial_claims.h"
#include "sparsight/papers/robust_moe/figures/attack_figures.h"
#include "sparsight/reproduce/figure_parts.h"

namespace sparsight::robust_moe {
namespace {

constexpr const char *kNoAux = "cross entropy", *kAux = "cross entropy + importance";

struct SweepOptions : CellOptions {
  std::vector<int64_t> eval_k = {1};
  std::vector<double> eval_capacity = {1};
  SweepOptions(Scale scale, VisionData data) : CellOptions(scale, data) {
    if (scale == Scale::paper) eval_k = {1, 4, 8}, eval_capacity = {0.5, 1, 1.5};
  }
  void declare(OptionSet& set) {
    CellOptions::declare(set);
    set.integers("eval_k", &eval_k, {1, 1024}, "experts of each token under attack, besides k");
    set.floats("eval_capacity", &eval_capacity, {0, 1000}, "capacity factors under attack, besides capacity");
  }
};

// How the experts of an MoE are chosen under attack.
struct Choice {
  int64_t k = 0;
  double capacity = 0;
};

// The choice of the training, then those with another k or another capacity.
std::vector<Choice> make_choices(const SweepOptions& options) {
  const Choice trained{options.vision.k, options.vision.capacity};
  std::vector<Choice> choices = {trained};
  for (const int64_t k : options.eval_k)
    if (k != trained.k) choices.push_back({k, trained.capacity});
  for (const double capacity : options.eval_capacity)
    if (capacity != trained.capacity) choices.push_back({trained.k, capacity});
  return choices;
}

void add_jobs(std::vector<Json>& jobs, const VisionModel& model, const std::optional<Choice>& choice,
              const std::string& attack, const std::string& losses, const std::vector<double>& epsilons) {
  for (const double epsilon : epsilons)
    jobs.push_back({{"model", model.name},
                    {"training", model.training},
                    {"k", choice ? Json(choice->k) : Json()},
                    {"capacity", choice ? Json(choice->capacity) : Json()},
                    {"attack", attack},
                    {"attacked", losses},
                    {"epsilon", epsilon}});
}

std::vector<Json> sweep_jobs(const FigureRun& run, VisionData data) {
  const SweepOptions options = chosen(cell_defaults<SweepOptions>(data), run);
  const std::vector<Choice> choices = make_choices(options);
  std::vector<Json> jobs;
  for (const VisionModel& model : all_models(options)) {
    const bool routed = model.name == kMoeModel;
    const std::optional<Choice> trained = routed ? std::optional(choices.front()) : std::nullopt;
    for (const std::string attack : {kPgd, kPublishedPgd, kApgd})
      for (const std::string losses : {kNoAux, kAux})
        if (losses == kNoAux || (routed && attack != kPublishedPgd))
          add_jobs(jobs, model, trained, attack, losses, options.epsilons);
    for (size_t i = 1; routed && i < choices.size(); ++i)
      add_jobs(jobs, model, choices[i], kPgd, kNoAux, options.epsilons);
  }
  return with_seeds(jobs, options.repeats);
}

Json measure_sweep(const Json& job, const FigureRun& run, VisionData data) {
  const SweepOptions options = chosen(cell_defaults<SweepOptions>(data), run);
  const AttackCells cells(options, run);
  const VisionModel model{job.at("model"), job.at("training"), options.vision.experts};
  CellAttack attack{
      .name = job.at("attack"), .epsilon = job.at("epsilon"), .router_weight = job.at("attacked") == kAux ? 1.0 : 0.0};
  VisionOptions attacked = options.vision;
  if (model.name == kMoeModel) {
    attacked.k = job.at("k"), attacked.capacity = job.at("capacity");
    if (attacked.k != options.vision.k) attack.k = attacked.k;
    if (attacked.capacity != options.vision.capacity) attack.capacity = attacked.capacity;
  }
  Json measured = cells.measure(model, job.at("seed").get<int64_t>(), attack);
  measured.update(layer_summary(measured));
  measured["gflop"] = vision_cost(model, attacked, run).gflop;
  return measured;
}

}  // namespace

Figure sweep_figure(VisionData data) {
  Figure figure = cell_figure("robust_moe/sweep", "every model, attack and epsilon with all measures", data);
  figure.axes = {"model", "training", "k", "capacity", "attack", "attacked", "epsilon"};
  figure.measures = {{"clean_error", "error without attack (%)", 1, {"images"}},
                     {"robust_error", "error under attack (%)", 1, {"images"}},
                     {"robust_low", "its Wilson interval from"},
                     {"robust_high", "to"},
                     {"success", "success of the attack (%)", 1, {"clean_correct"}},
                     {"changed", "other prediction (%)", 1, {"images"}},
                     {"clean_loss", "cross entropy without attack", 3},
                     {"attacked_loss", "under attack", 3},
                     {"change", "change of the routing, mean of the layers", 3},
                     {"change_first", "of the first layer", 3},
                     {"change_last", "of the last layer", 3},
                     {"change_moved", "of the images that the attack moved", 3},
                     {"change_chosen", "before capacity", 3},
                     {"change_public", "as the authors' code counts", 3},
                     {"of_chance", "as a share of chance", 3}};
  for (const Measure& measure : balance_measures()) figure.measures.push_back(measure);
  for (const Measure& measure :
       {Measure{"queries", "queries per image", 0}, Measure{"gradients", "gradients per image", 0},
        Measure{"largest", "largest perturbation (255ths)", 3}, Measure{"gflop", "GFLOP of an image", 5},
        Measure{"images", "images", 0}})
    figure.measures.push_back(measure);
  set_options(figure, cell_defaults<SweepOptions>(data), [](const SweepOptions& options) {
    return std::vector<std::string>{
        cat("k and capacity: of the MoE under attack. It was trained with k = ", options.vision.k,
            " and a capacity factor of ", shown_number(options.vision.capacity),
            " (0: no limit); rows with another of the two are those of the same weights under PGD. With a limit the "
            "images of a batch (",
            options.attack_batch, " at most) share the capacity and are attacked together."),
        "AutoPGD leaves images alone that are misclassified as they are: compare the routing under different attacks "
        "by its change in the images that the attack moved."};
  });
  figure.jobs = [data](const FigureRun& run) { return sweep_jobs(run, data); };
  figure.measure = [data](const Json& job, const FigureRun& run) { return measure_sweep(job, run, data); };
  figure.claims = [](const ResultTable& table, const FigureRun&) {
    return std::vector<Claim>{
        never_below(table, "the error under attack is at least that without it", "robust_error", "clean_error", 2)};
  };
  return figure;
}

}  // namespace sparsight::robust_moe
