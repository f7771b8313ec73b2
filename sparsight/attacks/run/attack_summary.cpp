#include "sparsight/attacks/run/attack_summary.h"

#include <algorithm>

#include <ATen/TensorOperators.h>

#include "sparsight/attacks/cascade_warnings.h"
#include "sparsight/attacks/run/attack_distances.h"
#include "sparsight/core/error.h"
#include "sparsight/eval/statistics.h"

namespace sparsight {
namespace {

constexpr double kManyZeroGradients = 0.01;  // of all gradients

int64_t count_true(const at::Tensor& flags) { return flags.sum().item<int64_t>(); }

// [B]: the loss of the labels and, of a targeted attack, minus that of the target.
at::Tensor piece_losses(const at::Tensor& logits, const AttackLabels& labels) {
  return attack_loss::automatic(logits.to(at::kDouble), labels);
}

void count_assignments(const Routings& routings, int64_t& chosen, int64_t& kept) {
  for (const auto& [layer, routing] : routings) {
    if (routing.soft) continue;
    chosen += routing.kept.numel();
    kept += count_true(routing.kept);
  }
}

Json drop_rate(int64_t chosen, int64_t kept) {
  return chosen > 0 ? Json(static_cast<double>(chosen - kept) / static_cast<double>(chosen)) : Json();
}

std::vector<Routing> routings_in_order(const ModelVerdict& verdict) {
  std::vector<Routing> routings;
  for (const std::string& layer : verdict.layers) routings.push_back(verdict.routings.at(layer));
  return routings;
}

}  // namespace

Json share_json(int64_t count, int64_t of) {
  Json share{{"count", count}, {"of", of}, {"value", Json()}, {"interval", Json()}};
  if (of == 0) return share;
  const Interval interval = wilson_interval(count, of);
  share["value"] = static_cast<double>(count) / static_cast<double>(of);
  share["interval"] = {interval.low, interval.high};
  return share;
}

void AttackSummary::add_stages(const AttackShard& piece) {
  if (stages_.empty())
    for (const StageResult& stage : piece.stages) stages_.emplace_back().name = stage.name;
  SPARSIGHT_CHECK(stages_.size() == piece.stages.size());
  for (size_t i = 0; i < stages_.size(); ++i) {
    const StageResult& stage = piece.stages[i];
    stages_[i].robust_before += stage.robust_before;
    stages_[i].gained += stage.gained;
    stages_[i].cost += stage.cost;
    stages_[i].seconds += stage.seconds;
  }
  cost_ += piece.cost;
  gradients_.images += piece.gradients.images;
  gradients_.zero += piece.gradients.zero;
  gradients_.not_finite += piece.gradients.not_finite;
}

void AttackSummary::add(const AttackShard& piece, const PieceCheck& check) {
  const at::Tensor clean = clean_correct(piece), after = attacked_correct(piece);
  const auto [counted, fooled] = piece_success(piece);
  multi_label_ = piece.batch.labels.several();
  images_ += clean.size(0);
  clean_ += count_true(clean);
  after_ += count_true(after);
  robust_ += count_true(clean & after);
  counted_ += count_true(counted);
  fooled_ += count_true(fooled);
  changed_ += count_true(piece.clean.logits.argmax(1) != piece.attacked.logits.argmax(1));
  unstable_ += count_true((piece.stage >= 0) != fooled);
  misclassified_ += count_true(fooled & check.misclassified);
  in_8_bits_ += count_true(fooled & check.misclassified_in_8_bits);
  clean_loss_ += piece_losses(piece.clean.logits, piece.batch.labels).sum().item<double>();
  attacked_loss_ += piece_losses(piece.attacked.logits, piece.batch.labels).sum().item<double>();
  const AttackLabels objective{piece.batch.labels.label, piece.target, piece.target.defined()};
  counted_before_ += (piece_losses(piece.clean.logits, objective) * counted).sum().item<double>();
  counted_after_ += (piece_losses(piece.attacked.logits, objective) * counted).sum().item<double>();
  if (objective.targeted) at_target_before_ += count_true(counted & piece.clean.logits.argmax(1).eq(piece.target));
  largest_norm_ = std::max(largest_norm_, check.largest_norm);
  lowest_ = std::min(lowest_, check.lowest);
  highest_ = std::max(highest_, check.highest);
  count_assignments(piece.clean.routings, chosen_[0], kept_[0]);
  count_assignments(piece.attacked.routings, chosen_[1], kept_[1]);
  const at::Tensor moved = piece.norm > 0;
  routing_.add(routings_in_order(piece.clean), routings_in_order(piece.attacked), moved);
  moved_ += count_true(moved);
  if (piece.distance.defined())
    for (int64_t i = 0; i < counted.size(0); ++i)
      if (counted[i].item<bool>()) distances_.push_back(piece.distance[i].item<double>());
  add_stages(piece);
}

Json AttackSummary::json() const {
  const auto n = static_cast<double>(std::max<int64_t>(1, images_));
  Json stages = Json::array();
  double seconds = 0;
  for (size_t i = 0; i < stages_.size(); ++i) {
    const StageResult& stage = stages_[i];
    const int64_t left = stage.robust_before - stage.gained;
    seconds += stage.seconds;
    stages.push_back({{"name", stage.name},
                      {"attack", plan_.stages.at(i).attack},
                      {"settings", plan_.stages.at(i).settings},
                      {"robust_before", stage.robust_before},
                      {"gained", stage.gained},
                      {"robust_after", share_json(left, images_)},
                      {"queries", stage.cost.queries},
                      {"gradients", stage.cost.gradients},
                      {"seconds", stage.seconds}});
  }
  Json json{{"images", images_},
            {"clean_accuracy", share_json(clean_, images_)},
            {"robust_accuracy", share_json(robust_, images_)},
            {"success_rate", share_json(fooled_, counted_)},
            {"prediction_change", share_json(changed_, images_)},
            {"accuracy_after", share_json(after_, images_)},
            {"loss", {{"clean", clean_loss_ / n}, {"attacked", attacked_loss_ / n}}},
            {"stages", std::move(stages)},
            {"queries", cost_.queries},
            {"gradients", cost_.gradients},
            {"seconds", seconds},
            {"gradient_counts",
             {{"images", gradients_.images}, {"zero", gradients_.zero}, {"not_finite", gradients_.not_finite}}},
            {"drop_rate", {{"clean", drop_rate(chosen_[0], kept_[0])}, {"attacked", drop_rate(chosen_[1], kept_[1])}}},
            {"saved_images",
             {{"largest_norm", largest_norm_},
              {"lowest", lowest_},
              {"highest", highest_},
              {"misclassified", misclassified_},
              {"misclassified_in_8_bits", in_8_bits_},
              {"of", fooled_}}},
            {"moved_images", moved_},
            {"routing", routing_.layers()}};
  if (plan_.targeted()) {
    json["target"] = target_json(plan_);
    json["target"]["left_out"] = images_ - counted_;
    json["target"]["predicted_clean"] = share_json(at_target_before_, counted_);
  }
  if (measures_distances(plan_)) json["distances"] = distances_json(distances_, measures_beyond_epsilon(plan_));
  if (multi_label_)
    json["fdr_at_1"] = {{"clean", share_json(images_ - clean_, images_)},
                        {"attacked", share_json(images_ - after_, images_)}};
  return json;
}

std::vector<std::string> AttackSummary::warnings() const {
  std::vector<std::string> warnings = stage_warnings(stages_, images_);
  const auto gradients = static_cast<double>(gradients_.images);
  if (gradients_.not_finite > 0)
    warnings.push_back(cat(gradients_.not_finite, " of ", gradients_.images,
                           " gradients were not finite and counted as 0: attacks with gradients are weaker than they "
                           "look"));
  if (gradients > 0 && static_cast<double>(gradients_.zero) > kManyZeroGradients * gradients)
    warnings.push_back(cat(gradients_.zero, " of ", gradients_.images,
                           " gradients were 0: attacks with gradients may fail where the model is not robust"));
  if (!plan_.is_cascade() && gradients_.images > 0 && plan_.threat.epsilon > 0 && counted_ > 0 &&
      counted_after_ <= counted_before_)
    warnings.push_back("the loss did not rise: the gradients do not lead anywhere, or the step is too large");
  if (unstable_ > 0)
    warnings.push_back(cat(unstable_,
                           " images are near a boundary: the attack and the last pass disagree on them, and "
                           "the last pass counts"));
  if (misclassified_ < fooled_)
    warnings.push_back(cat(fooled_ - misclassified_, " of ", fooled_, " fooled images are ",
                           plan_.targeted() ? "not predicted as the target" : "classified correctly",
                           " when they are read again from their file"));
  return warnings;
}

}  // namespace sparsight
