#include "sparsight/runs/attack_batch_size.h"

#include <algorithm>

#include <ATen/ops/arange.h>

#include "sparsight/attacks/attack.h"
#include "sparsight/attacks/objective.h"
#include "sparsight/core/machine.h"

namespace sparsight {
namespace {

constexpr int64_t kMeasuredImages = 9;

void one_pass(AttackedModel& model, const AttackBatch& batch, bool gradients) {
  const uint64_t step = first_step("batch size", 0);
  if (gradients)
    evaluate_objective(model, {}, batch, batch.pixels, step);
  else
    evaluate_loss(model, {}, batch, batch.pixels, step);
}

}  // namespace

BatchMemory find_batch_size(AttackedModel& model, const AttackBatch& batch, bool gradients) {
  const int64_t images = std::min(kMeasuredImages, batch.pixels.size(0));
  if (images < 2) return {};
  one_pass(model, batch.select(at::arange(1, at::kLong)), gradients);  // and what is needed only once
  reset_peak_memory();
  const int64_t before = resident_memory_bytes();
  one_pass(model, batch.select(at::arange(images, at::kLong)), gradients);
  // What the first pass took is still there, unused.
  BatchMemory found;
  found.bytes_per_image = std::max<int64_t>(peak_memory_bytes() - before, 0) / (images - 1);
  const int64_t room = available_memory_bytes() / 2;
  while (found.batch < kLargestFoundBatch && (room == 0 || 2 * found.batch * found.bytes_per_image <= room))
    found.batch *= 2;
  return found;
}

}  // namespace sparsight
