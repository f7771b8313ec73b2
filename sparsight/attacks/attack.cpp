#include "sparsight/attacks/attack.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>

#include "sparsight/attacks/check_perturbation.h"
#include "sparsight/attacks/projection.h"
#include "sparsight/attacks/routed/clean_pass.h"
#include "sparsight/attacks/routed/objective.h"
#include "sparsight/core/error.h"
#include "sparsight/core/random.h"

namespace sparsight {
namespace {

// images: their number.
void check_targets(const AttackLabels& labels, int64_t images, const Attack& attack) {
  if (!labels.targeted) return;
  if (!attack.target())
    fail("this attack cannot be targeted; use one with the setting target (Attack::target), such as apgd");
  const at::Tensor& target = labels.target;
  if (labels.several() || !target.defined() || target.sizes() != at::IntArrayRef({images}) ||
      target.scalar_type() != at::kLong)
    fail("a targeted attack takes one label and one target per image, [", images, "] int64, got targets of shape ",
         target.defined() ? target.sizes() : at::IntArrayRef{}, " and labels of shape ", labels.label.sizes());
}

void check_batch(const AttackBatch& batch, const AttackedModel& model, const Attack& attack) {
  const ThreatModel& threat = attack.context().threat;
  const at::Tensor& x = batch.pixels;
  if (x.dim() < 2 || (x.scalar_type() != at::kFloat && x.scalar_type() != at::kDouble))
    fail("an attack takes pixels as fp32 or fp64 of shape [B,...], got ", x.scalar_type(), " ", x.sizes());
  if (!(model.range() == threat.range))
    fail("the attack changes pixels in ", to_text(threat.range), ", but the model takes pixels in ",
         to_text(model.range()), "; convert the threat with in_range()");
  const auto count = [&](const at::Tensor& values) {
    return values.defined() && values.dim() > 0 ? values.size(0) : -1;
  };
  if (count(batch.labels.label) != x.size(0))
    fail("an attack takes one label per image: got ", x.size(0), " images and labels of shape ",
         batch.labels.label.defined() ? batch.labels.label.sizes() : at::IntArrayRef{});
  check_targets(batch.labels, x.size(0), attack);
  if (batch.labels.label.dim() > 1 && !attack.takes_several_labels())
    fail("this attack takes one label per image, got labels of shape ", batch.labels.label.sizes(),
         "; use one that takes several (Attack::takes_several_labels)");
  if (batch.image.defined() && (count(batch.image) != x.size(0) || batch.image.scalar_type() != at::kLong))
    fail("AttackBatch::image must be int64 of shape [", x.size(0), "], got ", batch.image.scalar_type(), " ",
         batch.image.sizes());
  if (x.numel() == 0) return;
  const double low = x.min().item<double>(), high = x.max().item<double>();
  if (!(low >= threat.range.low && high <= threat.range.high))
    fail("an attack starts from pixels in ", to_text(threat.range), ", got ", low, " to ", high,
         "; normalisation is part of the model");
}

void check_attack_norm(const Attack& attack) {
  const Norm norm = attack.context().threat.norm;
  if (!attack.takes_norm(norm))
    fail("this attack does not take the norm ", to_text(norm), "; use one that does (Attack::takes_norm)");
}

// `given` with the numbers of its images and their clean passes.
AttackBatch with_clean_images(const AttackBatch& given) {
  AttackBatch batch = given;
  batch.pixels = given.pixels.detach();
  if (!batch.image.defined()) batch.image = at::arange(batch.pixels.size(0), at::kLong);
  batch.clean = std::make_shared<CleanImages>(batch.pixels, batch.image);
  batch.row = at::arange(batch.pixels.size(0), at::kLong);
  return batch;
}

}  // namespace

AttackBatch Attack::prepared(AttackedModel& model, const AttackBatch& given) const {
  check_attack_norm(*this);
  check_batch(given, model, *this);
  AttackBatch batch = with_clean_images(given);
  if (batch.pixels.size(0) == 0 || batch.labels.targeted || !target() || !target()->is_on()) return batch;
  if (batch.labels.several()) fail("a targeted attack takes one label per image, got ", batch.labels.label.sizes());
  const at::Tensor logits = verdict_logits(model, batch, batch.pixels, first_step("target", 0));
  return with_chosen_targets(*this, std::move(batch), logits);
}

AttackResult Attack::run(AttackedModel& model, const AttackBatch& given) const {
  const at::NoGradGuard no_grad;
  const AttackCost before = model.cost();
  const AttackBatch batch = prepared(model, given);
  AttackResult result;
  if (batch.labels.targeted) result.target = batch.labels.target;
  if (batch.pixels.size(0) == 0) {
    result.pixels = batch.pixels;
    result.correct = result.withstood = at::arange(0, at::kLong).to(at::kBool);
    return result;
  }
  const Perturbation found = perturb_and_measure(model, batch);
  result.pixels = inside_ball(found.pixels, batch.pixels, context_.threat);
  result.distance = found.distance;
  check_perturbation(result.pixels, batch.pixels, context_.threat, clips_pixels());
  const at::Tensor logits = verdict_logits(model, batch, result.pixels, first_step("result", 0));
  result.correct = classified_correctly(logits, batch.labels.label);
  result.withstood = withstands_attack(logits, batch.labels);
  result.cost = model.cost() - before;
  return result;
}

at::Tensor Attack::pixels(AttackedModel& model, const AttackBatch& given) const {
  const at::NoGradGuard no_grad;
  const AttackBatch batch = prepared(model, given);
  return batch.pixels.size(0) == 0 ? batch.pixels : inside_ball(perturb(model, batch), batch.pixels, context_.threat);
}

uint64_t first_step(const std::string& part, int64_t restart, int64_t target) {
  return hash_combine(hash_combine(hash_name(part), static_cast<uint64_t>(restart)), static_cast<uint64_t>(target));
}

at::Tensor images_to_attack(const at::Tensor& robust, bool coupled) {
  if (coupled && robust.any().item<bool>()) return at::arange(robust.size(0), at::kLong);
  return robust.nonzero().squeeze(1);
}

AttackBatch with_chosen_targets(const Attack& attack, AttackBatch batch, const at::Tensor& logits) {
  const TargetOption* option = attack.target();
  if (!option || !option->is_on() || batch.labels.targeted) return batch;
  batch.labels.target = chosen_targets(option->target, batch, logits, attack.context().seed);
  batch.labels.targeted = true;
  return batch;
}

at::Tensor verdict_logits(AttackedModel& model, const AttackBatch& batch, const at::Tensor& pixels, uint64_t step) {
  Objective objective;
  objective.loss = [](const at::Tensor& logits, const AttackLabels&) { return logits.select(1, 0); };
  objective.passes = model.randomised() ? kVerdictPasses : 1;
  return evaluate_loss(model, objective, batch, pixels, step).logits;
}

at::Tensor still_correct(AttackedModel& model, const AttackBatch& batch, const at::Tensor& pixels, uint64_t step) {
  return classified_correctly(verdict_logits(model, batch, pixels, step), batch.labels.label);
}

at::Tensor still_withstands(AttackedModel& model, const AttackBatch& batch, const at::Tensor& pixels, uint64_t step) {
  return withstands_attack(verdict_logits(model, batch, pixels, step), batch.labels);
}

}  // namespace sparsight
