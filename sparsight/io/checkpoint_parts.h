// Checkpoints that are not all in memory at the same time, as io/safetensors_parts.h.
#pragma once

#include "sparsight/io/checkpoint.h"
#include "sparsight/io/safetensors_parts.h"

namespace sparsight {

// source: numbers the weights, and after them the tensors of `training`.
void write_checkpoint(const std::string& path, const Checkpoint& checkpoint, const TensorSource& source);

// cut: is given names without the prefix "training/".
Checkpoint read_checkpoint(const std::string& path, CheckpointParts parts, const TensorCut& cut);

}  // namespace sparsight
