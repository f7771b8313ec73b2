#include "sparsight/attacks/run/attack_batch_size.h"

#include <algorithm>

#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>

#include "sparsight/attacks/attack.h"
#include "sparsight/attacks/routed/objective.h"
#include "sparsight/core/freed_memory.h"
#include "sparsight/core/machine.h"
#include "sparsight/ops/caching_allocator.h"
#include "sparsight/ops/cpu/arena.h"

namespace sparsight {
namespace {

constexpr int64_t kMeasuredImages = 8;  // for each thread, enough that threads share them (ops/data_parallel.h)

void one_pass(AttackedModel& model, const AttackBatch& batch, bool gradients) {
  const uint64_t step = first_step("batch size", 0);
  if (gradients)
    evaluate_objective(model, {}, batch, batch.pixels, step);
  else
    evaluate_loss(model, {}, batch, batch.pixels, step);
}

}  // namespace

int64_t pass_bytes_per_image(AttackedModel& model, const AttackBatch& batch, bool gradients) {
  const int64_t images = std::min(kMeasuredImages * at::get_num_threads(), batch.pixels.size(0));
  const AttackBatch some = batch.select(at::arange(images, at::kLong));
  one_pass(model, batch.select(at::arange(1, at::kLong)), gradients);  // with what is needed only once
  // Else earlier passes have left enough for this one.
  cpu::release_arena();
  release_cached_blocks();
  release_freed_memory();
  const int64_t before = resident_memory_bytes();
  reset_peak_memory();
  one_pass(model, some, gradients);
  return std::max<int64_t>(peak_memory_bytes() - before, 0) / images;
}

BatchMemory find_batch_size(AttackedModel& model, const AttackBatch& batch, bool gradients) {
  BatchMemory found{1, pass_bytes_per_image(model, batch, gradients)};
  const int64_t room = available_memory_bytes() / 2;
  while (found.batch < kLargestFoundBatch && (room == 0 || 2 * found.batch * found.bytes_per_image <= room))
    found.batch *= 2;
  return found;
}

}  // namespace sparsight
