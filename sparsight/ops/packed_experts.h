// Experts packed for inference: weights in the order in which the kernels read them, optionally in fewer bits. With few
// tokens experts are memory-bound, so half or a quarter of the bytes saves most of the time.
// int8 weights are multiplied with rows quantised to int8, and sums are exact (kernels/elementwise/integers_inl.h).
// bf16 weights are multiplied with rows rounded to bf16 where the CPU does that (the levels "avx512_bf16" and "amx" of
// kernels/isa/isa.h); elsewhere they are expanded in registers. Scales, biases, activation and gates are fp32. Letters:
// moe/axes.md.
#pragma once

#include <string>
#include <vector>

#include "sparsight/kernels/types.h"
#include "sparsight/ops/expert_mlp.h"
#include "sparsight/ops/weight_type.h"

namespace sparsight {

// The names of PackOrder, in its order.
const std::vector<std::string>& pack_order_names();

enum class PackOrder {
  plain,   // row-major, as given
  panels,  // of columns, for vectors
  tiles,   // for the matrix units of the level "amx"
};

// For each expert 8 D F bytes of weights (fp32), 4 D F (bf16), or 2 D F and 4 (D + F) of scales (int8), and the biases.
// In panels D and F count as multiples of 16, in tiles as multiples of 32.
struct PackedExperts {
  WeightType type = WeightType::fp32;
  PackOrder order = PackOrder::plain;
  int64_t experts = 0, width = 0, hidden = 0;  // E, D, F
  ExpertMlpWeights weights;  // w1 and w2 of the type if their order is plain, undefined otherwise; biases fp32
  // int8: the weight is scale * stored, with one scale for each expert and output channel, max|w| / 127. A channel with
  // a weight that is NaN or infinite is NaN throughout.
  at::Tensor scale1;   // [E,F] fp32
  at::Tensor scale2;   // [E,D] fp32
  at::Tensor storage;  // [E, bytes] uint8, w1 and w2 in an order of kernels/pack/packed_layout.h
};

// weights: fp32. The order is that which the active level of kernels/isa/isa.h reads fastest: tiles of bf16 and plain
// fp32 at "amx", where fp32 shares the memory of `weights`; panels else; plain where D or F is 0. Packed experts
// compute at every other level too, but there tiles are repacked into panels in every call.
PackedExperts pack_expert_weights(const ExpertMlpWeights& weights, WeightType type);
// Raises Error unless pack_expert_weights could have returned `packed`: for packed experts from an untrusted source.
void check_packed(const PackedExperts& packed);
// The fp32 weights that `packed` represents.
ExpertMlpWeights unpacked_experts(const PackedExperts& packed);

// expert_mlp() with the weights that `packed` represents; fp32 tokens. Packed as fp32 they give the same bits as
// expert_mlp() at the same level. Not differentiable.
at::Tensor packed_experts(const at::Tensor& tokens, const ExpertRows& rows, const PackedExperts& packed,
                          Activation activation);

}  // namespace sparsight
