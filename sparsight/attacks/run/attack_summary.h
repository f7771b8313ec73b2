// Adds up the pieces of an attack: rates with intervals, losses, costs, what the saved images are, warnings.
#pragma once

#include "sparsight/analysis/attacked_routing.h"
#include "sparsight/attacks/run/attack_check.h"

namespace sparsight {

// {"count", "of", "value", "interval"}: a share with its Wilson interval of 95 %; value is null of 0.
Json share_json(int64_t count, int64_t of);

class AttackSummary {
 public:
  explicit AttackSummary(const AttackPlan& plan) : plan_(plan) {}
  void add(const AttackShard& piece, const PieceCheck& check);

  // target: of a targeted attack, target_json() with left_out, the images whose label is the target, and
  // predicted_clean, the share of the others that are predicted as it before the attack;
  // fdr_at_1: {clean, attacked}, of multi-label data alone, whose accuracies are precision@1;
  // clean_accuracy, robust_accuracy, success_rate, prediction_change, accuracy_after (all shares); loss; stages;
  // distances (attack_distances.h), of attacks that measure them; queries, gradients, seconds; gradient_counts;
  // drop_rate; saved_images; moved_images (changed by the attack); routing (AttackedRouting::layers(); [] without MoE
  // layers).
  Json json() const;
  // Signs of masked gradients and of images that are misclassified only now and then.
  std::vector<std::string> warnings() const;

 private:
  void add_stages(const AttackShard& piece);

  AttackPlan plan_;
  int64_t images_ = 0, clean_ = 0, robust_ = 0, changed_ = 0, after_ = 0, fooled_ = 0, unstable_ = 0;
  int64_t counted_ = 0,
          at_target_before_ = 0;  // what fooled_ is of (AttackSuccess), and predicted as the target before
  bool multi_label_ = false;
  int64_t misclassified_ = 0, in_8_bits_ = 0, moved_ = 0;
  double clean_loss_ = 0, attacked_loss_ = 0;
  double counted_before_ = 0, counted_after_ = 0;  // the attack's loss, summed over counted images
  double largest_norm_ = 0, lowest_ = 1, highest_ = 0;
  int64_t chosen_[2] = {}, kept_[2] = {};  // of clean and attacked images
  std::vector<double> distances_;          // of images that are correct as they are
  AttackedRouting routing_;
  std::vector<StageResult> stages_;
  AttackCost cost_;
  GradientCounts gradients_;
};

}  // namespace sparsight
