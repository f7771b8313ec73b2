// How many images fit into memory at a time.
#pragma once

#include "sparsight/attacks/attack_batch.h"
#include "sparsight/attacks/attacked_model.h"

namespace sparsight {

inline constexpr int64_t kLargestFoundBatch = 128;  // more makes passes no faster

struct BatchMemory {
  int64_t batch = 1;            // a power of 2, at most kLargestFoundBatch
  int64_t bytes_per_image = 0;  // peak of a pass; 0 if unknown
};

// Peak memory of a pass over the first images of `batch`, divided by their number; 0 if unknown. gradients: with a
// backward pass.
int64_t pass_bytes_per_image(AttackedModel& model, const AttackBatch& batch, bool gradients);

// Measures such a pass and takes the batch that fills half of the memory available.
BatchMemory find_batch_size(AttackedModel& model, const AttackBatch& batch, bool gradients);

}  // namespace sparsight
