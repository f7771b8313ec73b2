// kernels/pack/pack_experts.h on tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include "sparsight/kernels/pack/packed_layout.h"

namespace sparsight::cpu {

// The torch type of the weights.
at::ScalarType stored_type(WeightType type);

// w1: [E,D,F], w2: [E,F,D], contiguous, of the layout's type. Returns [E, bytes of an expert] uint8.
at::Tensor pack_weights(const at::Tensor& w1, const at::Tensor& w2, const PackedLayout& layout);

struct UnpackedWeights {
  at::Tensor w1, w2;  // [E,D,F], [E,F,D]
};
UnpackedWeights unpack_weights(const at::Tensor& packed, const PackedLayout& layout);

}  // namespace sparsight::cpu
