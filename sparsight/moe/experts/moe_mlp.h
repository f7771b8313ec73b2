// Two-layer MLPs on rows already grouped by expert: ops/expert_mlp.h without gathering and gates.
// Letters: moe/axes.md; R rows, grouped by expert.
#pragma once

#include "sparsight/ops/expert_mlp.h"

namespace sparsight {

using MoeMlpWeights = ExpertMlpWeights;

// rows: [R,D] of the weights' type; offsets: [E+1] int64. Returns [R,D]: activate(x W1[e] + b1[e]) W2[e] + b2[e],
// with dropout of the activations [R,F].
// Has no second derivative (raises Error).
at::Tensor moe_mlp(const at::Tensor& rows, const at::Tensor& offsets, const MoeMlpWeights& weights,
                   Activation activation, const DropoutMask& dropout = {});

}  // namespace sparsight
