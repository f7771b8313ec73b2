// One attacked image, and what happens to the images that share the experts' capacity with it.
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/papers/robust_moe/figures/attack_figures.h"
#include "sparsight/reproduce/figure_parts.h"
#include "sparsight/reproduce/margins.h"

namespace sparsight::robust_moe {
namespace {

constexpr const char *kOnClass = "cross entropy", *kOnCapacity = "dropped assignments";

struct BatchDamageOptions : CellOptions {
  std::vector<double> capacities = {1};
  int64_t damage_batch = 8;
  BatchDamageOptions(Scale scale, VisionData data) : CellOptions(scale, data) {
    if (scale == Scale::paper) capacities = {0.5, 1, 1.5};
  }
  void declare(OptionSet& set) {
    CellOptions::declare(set);
    set.floats("capacities", &capacities, {0.01, 1000}, "capacity factors of the attacked MoE");
    set.integer("damage_batch", &damage_batch, {2, 100000}, "images of a batch, the first of which is attacked");
  }
};

std::vector<Json> batch_damage_jobs(const FigureRun& run, VisionData data) {
  const BatchDamageOptions options = chosen(cell_defaults<BatchDamageOptions>(data), run);
  if (options.damage_batch > options.vision.test_images)
    fail_usage("damage_batch is at most test_images, ", options.vision.test_images, ", got ", options.damage_batch);
  std::vector<Json> jobs;
  const auto add = [&](double capacity, const char* attack) {
    for (const double epsilon : attacked_epsilons(options))
      jobs.push_back({{"capacity", capacity}, {"attack", attack}, {"epsilon", epsilon}});
  };
  add(0, kOnClass);
  for (const double capacity : options.capacities)
    for (const char* attack : {kOnClass, kOnCapacity}) add(capacity, attack);
  return with_seeds(jobs, options.repeats);
}

Json measure_batch_damage(const Json& job, const FigureRun& run, VisionData data) {
  const BatchDamageOptions options = chosen(cell_defaults<BatchDamageOptions>(data), run);
  const VisionModel model{kMoeModel, kStandard, options.vision.experts};
  return AttackCells(options, run)
      .damage(model, job.at("seed").get<int64_t>(),
              {.epsilon = job.at("epsilon"),
               .capacity = job.at("capacity"),
               .drops = job.at("attack") == kOnCapacity,
               .batch = options.damage_batch});
}

// Statistics of the rows with the largest epsilon, one for each limit.
template <class Make>
Claim at_each_limit(const ResultTable& table, const std::string& text, const MarginTest& test, const Make& make) {
  std::vector<Margin> margins;
  for (const Json& capacity : table.axis_values("capacity")) {
    if (capacity.get<double>() == 0) continue;
    const auto row = [&](const char* attack) {
      return Json{{"capacity", capacity}, {"attack", attack}, {"epsilon", largest_epsilon(table)}};
    };
    margins.push_back({make(row), cat("with capacity ", shown(capacity))});
  }
  return judge(table, text, margins, test);
}

std::vector<Claim> batch_damage_claims(const ResultTable& table) {
  const MarginTest at_least{.ties = true, .decimals = 2}, more{.decimals = 2};
  return {every_trial_at_most(table, "without a capacity limit no other image changes its class", "changed", 0,
                              {{"capacity", 0.0}}),
          at_each_limit(
              table, "with one, an attack on the dropped assignments takes some from at least half of the other images",
              at_least, [](const auto& row) { return above(row(kOnCapacity), "lost", 50); }),
          at_each_limit(table, "and changes the class of at least 1 % of them", at_least,
                        [](const auto& row) { return above(row(kOnCapacity), "changed", 1); }),
          at_each_limit(table, "and of more than an attack on the class of the one image", more,
                        [](const auto& row) { return row_difference(row(kOnCapacity), row(kOnClass), "changed"); })};
}

std::vector<std::string> batch_damage_notes(const BatchDamageOptions& options) {
  return {
      cat("The first of ", options.damage_batch,
          " images is attacked by PGD, the others stay as they are, and all share the experts' capacity. Tokens "
          "take slots in their order, so the first image can take most. The capacity holds under attack only; 0: no "
          "limit. The MoE was trained as usual, with a capacity factor of ",
          shown_number(options.vision.capacity), "."),
      "Attack on dropped assignments: maximises their share in the batch and nothing else, and returns the iterate "
      "with the largest."};
}

}  // namespace

Figure batch_damage_figure(VisionData data) {
  Figure figure =
      cell_figure("robust_moe/damage", "what an attack on one image does to the other images of its batch", data);
  figure.axes = {"capacity", "attack", "epsilon"};
  figure.measures = {{"changed", "other images with another class (%)", 2, {"others"}},
                     {"lost", "other images that lose assignments (%)", 2, {"others"}},
                     {"lost_assignments", "their assignments lost (%)", 2},
                     {"error_before", "error of the others without attack (%)", 1, {"others"}},
                     {"error_after", "under attack (%)", 1, {"others"}},
                     {"dropped_before", "dropped assignments without attack (%)", 2},
                     {"dropped_after", "under attack (%)", 2},
                     {"others", "other images", 0}};
  set_options(figure, cell_defaults<BatchDamageOptions>(data), batch_damage_notes);
  figure.jobs = [data](const FigureRun& run) { return batch_damage_jobs(run, data); };
  figure.measure = [data](const Json& job, const FigureRun& run) { return measure_batch_damage(job, run, data); };
  figure.claims = [](const ResultTable& table, const FigureRun&) { return batch_damage_claims(table); };
  figure.notes.push_back("The paper has no such experiment.");
  return figure;
}

}  // namespace sparsight::robust_moe
