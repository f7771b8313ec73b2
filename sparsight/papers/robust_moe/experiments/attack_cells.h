// A sweep of attacks over models: a cell is one attack at one epsilon on one trained model. Trained models and measured
// cells are kept in a folder that the figures share, so that none is trained or attacked twice.
#pragma once

#include <optional>

#include "sparsight/papers/robust_moe/experiments/vision_models.h"
#include "sparsight/reproduce/kept_results.h"

namespace sparsight::robust_moe {

struct CellOptions {
  Repeats repeats;
  VisionOptions vision;
  int64_t attack_batch = 128;
  std::vector<double> epsilons;  // in 255ths of the pixel range
  int64_t pgd_steps = 40, apgd_steps = 100;
  CellOptions(Scale scale, VisionData data);
  void declare(OptionSet& set);
};
// Options of a figure at any scale: CellOptions, or a struct that adds settings to them.
template <class Options>
auto cell_defaults(VisionData data) {
  return [data](Scale scale) { return Options(scale, data); };
}

// The attacks. Differs from the paper: "PGD" and "AutoPGD" project each step, stay in the range of pixels, and return
// the strongest iterate (a misclassified one, if there is any). "PGD as published" does none of these, and is what the
// paper's numbers come from. AutoPGD leaves images that are misclassified as they are; "AutoPGD, largest loss" moves
// every image to its point of the largest loss, as PGD does, so that the changes of all images can be compared.
inline constexpr const char *kPgd = "PGD", *kPublishedPgd = "PGD as published", *kApgd = "AutoPGD",
                            *kApgdLoss = "AutoPGD, largest loss";

struct CellAttack {
  std::string name = kPgd;
  double epsilon = 0;         // in 255ths
  double router_weight = 0;   // above 0: also attacks the importance loss, with this multiple of its weight in training
  double task_weight = 1;     // 0: attacks the importance loss alone
  std::string gradient = {};  // of PGD: "experts" or "router", through these parts alone; "": through all
  // Settings of the attacked MoE; null: as in training.
  std::optional<int64_t> k = {};  // experts of each token
  std::optional<double> capacity = {};
};

// Attacks on one image of each batch of an MoE whose images share the experts' capacity. The attack of these steps is
// PGD, on the cross entropy or on the share of dropped assignments.
struct CellDamage {
  double epsilon = 0;
  double capacity = 0;
  bool drops = false;
  int64_t batch = 8;
};

// The trained models and measured cells of the paper.
KeptResults kept_results(const FigureRun& run);

class AttackCells {
 public:
  AttackCells(const CellOptions& options, const FigureRun& run);

  // Calls measure_attack(). Raises Error on an interrupt, as the others do.
  Json measure(const VisionModel& model, int64_t seed, const CellAttack& attack) const;
  // Calls measure_transfer(), or measure() where source and target are the same model.
  Json transfer(const VisionModel& source, const VisionModel& target, int64_t seed, const CellAttack& attack) const;
  // Calls measure_damage().
  Json damage(const VisionModel& model, int64_t seed, const CellDamage& attack) const;

 private:
  std::string trained(const VisionModel& model, int64_t seed) const;
  Json attacked(const std::string& weights, int64_t seed, const CellAttack& attack) const;

  CellOptions options_;
  FigureRun run_;
  KeptResults kept_;
};

// {"change_first", "change_mean", "change_last", ...}: of the layers, and their mean; null for a dense model.
Json layer_summary(const Json& measured);

// Copies a measure of one cell, and its outcomes if it has any, into the result of a job under another name.
void add_measure(Json& job, const std::string& key, const Json& cell, const std::string& measure);

// Epsilons above 0.
std::vector<double> attacked_epsilons(const CellOptions& options);

}  // namespace sparsight::robust_moe
