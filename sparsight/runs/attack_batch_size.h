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

// Measures passes over images of `batch`, of which it needs two, and takes the batch that fills half of the memory
// available. gradients: with a backward pass.
BatchMemory find_batch_size(AttackedModel& model, const AttackBatch& batch, bool gradients);

}  // namespace sparsight
