// Experts held for inference: packed once in the order in which the CPU reads them, and in fewer bits if that is asked
// for. Few tokens cost the reading of weights, not arithmetic: half or a quarter of the bytes is most of the time.
// Where the CPU multiplies tiles of bf16 and int8 (the level "amx" of ops/cpu/isa.h) rows meet such weights as they are
// stored: bf16 rows with bf16 weights, rows of two int8 digits with int8 weights; sums, biases, activation and gates
// are fp32. Elsewhere the kernels expand the weights in registers and compute in fp32. Letters: moe/axes.md.
#pragma once

#include <string>
#include <vector>

#include "sparsight/ops/expert_mlp.h"
#include "sparsight/ops/kernel_types.h"

namespace sparsight {

// The names that parse_weight_type knows: "fp32", "bf16", "int8".
const std::vector<std::string>& weight_type_names();
WeightType parse_weight_type(const std::string& name);  // raises UsageError for an unknown name

// The names of HeldOrder, in its order.
const std::vector<std::string>& held_order_names();

enum class HeldOrder {
  plain,   // as they came
  panels,  // of columns, for vectors
  tiles,   // for the matrix units of the level "amx"
};

// For each expert 8 D F bytes of weights (fp32), 4 D F (bf16), or 2 D F and 4 (D + F) of scales (int8), and the biases.
// In panels D and F count as multiples of 16, in tiles as multiples of 32 (bf16) or 64 (int8).
struct HeldExperts {
  WeightType type = WeightType::fp32;
  HeldOrder order = HeldOrder::plain;
  int64_t experts = 0, width = 0, hidden = 0;  // E, D, F
  ExpertMlpWeights weights;  // w1 and w2 of the type if their order is plain, undefined otherwise; biases fp32
  // int8: the weight is scale * stored, with one scale for each expert and output channel, max|w| / 127. A channel with
  // a weight that is NaN or infinite is NaN throughout.
  at::Tensor scale1;  // [E,F] fp32
  at::Tensor scale2;  // [E,D] fp32
  at::Tensor packed;  // [E, bytes] uint8, w1 and w2 in an order of ops/cpu/held_layout.h
};

// weights: fp32. The order is that which the active level of ops/cpu/isa.h reads fastest: tiles of bf16 and int8 and
// plain fp32 at "amx", where fp32 shares the memory of `weights`; panels elsewhere; plain where D or F is 0. Held
// experts compute at every other level too, but tiles are turned into panels in each call there.
HeldExperts hold_experts(const ExpertMlpWeights& weights, WeightType type);
// Raises Error where `held` is not what hold_experts could have returned: for held experts that come from elsewhere.
void check_held(const HeldExperts& held);
// The fp32 weights that `held` stands for.
ExpertMlpWeights released_experts(const HeldExperts& held);

// expert_mlp() with the weights that `held` stands for; fp32 tokens. Held as fp32 they give the same bits as
// expert_mlp() at the same level. Not differentiable.
at::Tensor held_experts(const at::Tensor& tokens, const ExpertRows& rows, const HeldExperts& held,
                        Activation activation);

}  // namespace sparsight
