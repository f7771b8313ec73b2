#include "sparsight/attacks/run/attack_check.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>

#include "sparsight/attacks/check_perturbation.h"
#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"

namespace sparsight {
namespace {

constexpr const char* kAttackAgain = "; remove the folder and attack again";

// target: of the attack, or undefined.
at::Tensor misclassified_at(AttackedModel& model, const AttackBatch& batch, const at::Tensor& target,
                            const at::Tensor& pixels, int64_t batch_size) {
  const at::Tensor logits = model_verdict(model, batch, pixels, batch_size).logits;
  return ~withstands_attack(logits, {batch.labels.label, target, target.defined()});
}

}  // namespace

PieceCheck check_piece(AttackedModel& model, const AttackedBatch& images, const AttackShard& piece,
                       const ThreatModel& threat, bool clipped, int64_t batch_size) {
  const at::Tensor &x = images.batch.pixels, &saved = piece.pixels;
  const std::string what = cat("the saved images from ", printable(images.ids.front()));
  if (images.checksum != piece.checksum || saved.sizes() != x.sizes())
    fail("the images of the dataset from ", printable(images.ids.front()),
         " are not those that were attacked: the data or its transforms changed", kAttackAgain);
  if (!at::isfinite(saved).all().item<bool>()) fail(what, " have pixels that are not finite", kAttackAgain);
  PieceCheck check;
  check.largest_norm = largest_perturbation(saved, x, threat.norm);
  if (check.largest_norm > threat.epsilon * (1 + 1e-6) + 1e-15)
    fail(what, " are ", check.largest_norm, " from their originals, beyond epsilon ", threat.epsilon, kAttackAgain);
  check.lowest = saved.min().item<double>();
  check.highest = saved.max().item<double>();
  if (clipped && (check.lowest < 0 || check.highest > 1))
    fail(what, " have pixels of ", check.lowest, " to ", check.highest, ", not 0 to 1", kAttackAgain);
  check.misclassified = misclassified_at(model, images.batch, piece.target, saved, batch_size);
  check.misclassified_in_8_bits =
      misclassified_at(model, images.batch, piece.target, (saved * 255).round().clamp(0, 255) / 255, batch_size);
  return check;
}

}  // namespace sparsight
