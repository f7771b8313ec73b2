#include "sparsight/attacks/partial_batch.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

double dropped_share(const ModelOutput& output) {
  double chosen = 0, kept = 0;
  for (const Routing& routing : output.routings) {
    chosen += static_cast<double>(routing.kept.numel());
    kept += routing.kept.sum().item<double>();
  }
  return chosen > 0 ? (chosen - kept) / chosen : 0;
}

AttackBatch numbered(AttackBatch batch) {
  if (!batch.image.defined()) batch.image = at::arange(batch.pixels.size(0), at::kLong);
  return batch;
}

}  // namespace

PartialBatchModel::PartialBatchModel(AttackedModel& model, AttackBatch batch, at::Tensor index)
    : AttackedModel(model.range()), model_(model), batch_(numbered(std::move(batch))), index_(std::move(index)) {}

ModelOutput PartialBatchModel::run(const at::Tensor& pixels, const AttackPass& pass) {
  if (pixels.size(0) != index_.size(0))
    fail("an attack among others changes all of its ", index_.size(0), " images together, got ", pixels.size(0));
  ModelOutput output =
      model_.forward(batch_.pixels.index_copy(0, index_, pixels), {batch_.image, pass.step, pass.pre_experts_hook});
  output.logits = output.logits.index_select(0, index_);
  return output;
}

BatchDamage batch_damage(AttackedModel& model, const AttackBatch& given, const at::Tensor& pixels,
                         const at::Tensor& attacked) {
  const at::NoGradGuard no_grad;
  const AttackBatch batch = numbered(given);
  const AttackPass pass{batch.image, first_step("batch_damage", 0)};
  const ModelOutput before = model.forward(batch.pixels, pass), after = model.forward(pixels, pass);
  const at::Tensor others = ~attacked;
  const auto count = [&](const at::Tensor& which) { return (which & others).sum().item<int64_t>(); };
  BatchDamage damage;
  damage.others = others.sum().item<int64_t>();
  damage.correct_before = count(classified_correctly(before.logits, batch.labels.label));
  damage.correct_after = count(classified_correctly(after.logits, batch.labels.label));
  damage.changed = count(before.logits.argmax(1) != after.logits.argmax(1));
  damage.dropped_before = dropped_share(before);
  damage.dropped_after = dropped_share(after);
  return damage;
}

at::Tensor attack_part_of_batch(const Attack& attack, AttackedModel& model, const AttackBatch& given,
                                const at::Tensor& index) {
  const AttackBatch batch = numbered(given);
  PartialBatchModel among(model, batch, index);
  return batch.pixels.index_copy(0, index, attack.run(among, batch.select(index)).pixels);
}

}  // namespace sparsight
