// The tensors of one expert that is an MLP, in a frozen model.
#pragma once

#include <optional>

#include "sparsight/engine/file/frozen_header.h"
#include "sparsight/kernels/experts/packed_experts.h"

namespace sparsight::engine {

struct MlpTensors {
  FrozenTensor w1, w2;  // [D,F], [F,D]
  std::optional<FrozenTensor> w1_scale, w2_scale, b1, b2;

  int64_t bytes() const;
};

// Read from the file into the expert of that number: its matrices, which make biases and scales zeros, and then those.
// Each raises Error where they do not have their checksums.
void read_matrices(const ByteSource& file, const MlpTensors& tensors, int64_t expert, cpu::PackedExperts& experts);
void read_vectors(const ByteSource& file, const MlpTensors& tensors, int64_t expert, cpu::PackedExperts& experts);

}  // namespace sparsight::engine
