// Experts held for inference in fewer bits. Few tokens cost the reading of weights, not arithmetic: half or a quarter
// of the bytes is most of the time. The kernels expand the weights in registers and compute in fp32. Letters:
// moe/axes.md.
#pragma once

#include "sparsight/ops/expert_mlp.h"

namespace sparsight {

enum class HeldType { bf16, int8 };

struct HeldExperts {
  HeldType type = HeldType::bf16;
  ExpertMlpWeights weights;  // w1 and w2 of the type, biases fp32
  // int8: the weight is scale * stored, with one scale for each expert and output channel, max|w| / 127.
  at::Tensor scale1;  // [E,F] fp32
  at::Tensor scale2;  // [E,D] fp32
};

// weights: fp32.
HeldExperts hold_experts(const ExpertMlpWeights& weights, HeldType type);
// The fp32 weights that `held` stands for.
ExpertMlpWeights released_experts(const HeldExperts& held);

// expert_mlp() with the weights that `held` stands for; fp32 tokens. Not differentiable.
at::Tensor held_experts(const at::Tensor& tokens, const ExpertRows& rows, const HeldExperts& held,
                        Activation activation);

}  // namespace sparsight
