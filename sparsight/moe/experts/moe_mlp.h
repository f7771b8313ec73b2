// The grouped two-layer perceptron as one differentiable operation with a hand-written backward pass: a matrix product
// per expert on its contiguous block of rows. Letters: moe/axes.md; R rows, grouped by expert.
#pragma once

#include <torch/types.h>

#include "sparsight/ops/activation.h"

namespace sparsight {

// Stacked weights; all of one type.
struct MoeMlpWeights {
  at::Tensor w1;  // [E,D,F]
  at::Tensor b1;  // [E,F]
  at::Tensor w2;  // [E,F,D]
  at::Tensor b2;  // [E,D]
};

// rows: [R,D] of the weights' type; offsets: [E+1] int64. Returns [R,D]: activate(x W1[e] + b1[e]) W2[e] + b2[e].
// Has no second derivative (raises Error).
at::Tensor moe_mlp(const at::Tensor& rows, const at::Tensor& offsets, const MoeMlpWeights& weights,
                   Activation activation);

}  // namespace sparsight
