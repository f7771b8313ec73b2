// Experts held for inference in fewer bits. Few tokens cost the reading of weights, not arithmetic: half or a quarter
// of the bytes is most of the time. Where the CPU multiplies tiles of bf16 and int8 (the level "amx" of ops/cpu/isa.h)
// rows meet the weights as they are stored: bf16 rows with bf16 weights, rows of two int8 digits with int8 weights;
// sums, biases, activation and gates are fp32. Elsewhere the kernels expand the weights in registers and compute in
// fp32. Letters: moe/axes.md.
#pragma once

#include "sparsight/ops/expert_mlp.h"

namespace sparsight {

enum class HeldType { bf16, int8 };

// For each expert 4 D F bytes of weights (bf16) or 2 D F and 4 (D + F) of scales (int8), and the biases. In `tiles` D
// and F count as multiples of 32 (bf16) or 64 (int8).
struct HeldExperts {
  HeldType type = HeldType::bf16;
  int64_t experts = 0, width = 0, hidden = 0;  // E, D, F
  ExpertMlpWeights weights;  // w1 and w2 of the type, or undefined where `tiles` is defined; biases fp32
  // int8: the weight is scale * stored, with one scale for each expert and output channel, max|w| / 127.
  at::Tensor scale1;  // [E,F] fp32
  at::Tensor scale2;  // [E,D] fp32
  at::Tensor tiles;   // [E, bytes] uint8, w1 and w2 as ops/cpu/tile_layout.h says; only if held at level "amx"
};

// weights: fp32. Experts that were held at one level of ops/cpu/isa.h compute at every other level too, but `tiles` are
// unpacked again in each call there.
HeldExperts hold_experts(const ExpertMlpWeights& weights, HeldType type);
// The fp32 weights that `held` stands for.
ExpertMlpWeights released_experts(const HeldExperts& held);

// expert_mlp() with the weights that `held` stands for; fp32 tokens. Not differentiable.
at::Tensor held_experts(const at::Tensor& tokens, const ExpertRows& rows, const HeldExperts& held,
                        Activation activation);

}  // namespace sparsight
