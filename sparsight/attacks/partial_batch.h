// A model that always sees the whole batch while some of its images are attacked: where images share the experts'
// capacity, an attacked image can take the slots of others.
#pragma once

#include "sparsight/attacks/attack.h"

namespace sparsight {

// The images at `index` [n] int64 of a batch are its input, and their logits its output; the others stay as they are.
// Routings are those of the whole batch.
class PartialBatchModel : public AttackedModel {
 public:
  // model: outlives this.
  PartialBatchModel(AttackedModel& model, AttackBatch batch, at::Tensor index);

  bool randomised() const override { return model_.randomised(); }
  bool coupled() const override { return true; }

 protected:
  ModelOutput run(const at::Tensor& pixels, const AttackPass& pass) override;

 private:
  AttackedModel& model_;
  AttackBatch batch_;
  at::Tensor index_;
};

// What an attack on some images of a batch does to the others.
struct BatchDamage {
  int64_t others = 0;          // images that were not attacked
  int64_t correct_before = 0;  // of the others
  int64_t correct_after = 0;
  int64_t changed = 0;        // others whose predicted class is another one
  double dropped_before = 0;  // share of all assignments of the batch that capacity dropped, over all layers
  double dropped_after = 0;
};

// pixels: [B,...], the batch with the attacked images in their places. attacked: [B] bool. Two passes of the same
// noise.
BatchDamage batch_damage(AttackedModel& model, const AttackBatch& batch, const at::Tensor& pixels,
                         const at::Tensor& attacked);

// Attacks the images at `index` [n] int64 among the others. Returns [B,...].
at::Tensor attack_part_of_batch(const Attack& attack, AttackedModel& model, const AttackBatch& batch,
                                const at::Tensor& index);

}  // namespace sparsight
