// The experts of an MoE layer as one operation: gathers each expert's tokens, runs a two-layer MLP on them, and sums
// the results of each token weighted by the gates. How the CPU kernels work: docs/kernels.md. Letters: moe/axes.md; R
// rows (kept assignments), grouped by expert.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "sparsight/ops/activation.h"
#include "sparsight/ops/dropout_mask.h"
#include "sparsight/ops/residual_add.h"
#include "sparsight/ops/rows.h"

namespace sparsight {

// Stacked weights; all of one type, that of the tokens.
struct ExpertMlpWeights {
  at::Tensor w1;  // [E,D,F]
  at::Tensor b1;  // [E,F] or undefined
  at::Tensor w2;  // [E,F,D]
  at::Tensor b2;  // [E,D] or undefined
};

// Which token each row is, and which expert it belongs to.
struct ExpertRows {
  RowMap map;                // of N tokens
  at::Tensor offsets;        // [E+1] int64: expert e owns rows offsets[e] .. offsets[e+1]
  at::Tensor gate;           // [R] of any floating type, or undefined for ones
  DropoutMask dropout = {};  // of the hidden layer after its activation, F columns
};

struct ExpertMlpOptions {
  Activation activation = Activation::gelu;
  bool recompute = false;  // recompute the hidden layer in the backward pass instead of keeping it
};

// tokens: [N,D]. Returns [N,D]: y_j = sum over the rows r of token j of gate_r * (drop_r(act(x_j W1 + b1)) W2 + b2),
// with the weights of the row's expert; 0 for a token without rows. Differentiable once in tokens, gate and weights; an
// expert without rows is not read and receives a gradient of exactly 0. fp32 on a CPU runs on the kernels of kernels/,
// in a fixed order of sums (the same bits for any number of threads); everything else, and a D or F of 0, runs on
// torch's operations.
at::Tensor expert_mlp(const at::Tensor& tokens, const ExpertRows& rows, const ExpertMlpWeights& weights,
                      const ExpertMlpOptions& options);

// The checks of expert_mlp(): both raise Error for shapes, types or offsets that do not match. checked_rows returns the
// rows with all tensors contiguous and the offsets on the CPU.
void check_weights(const ExpertMlpWeights& weights, at::ScalarType type, at::Device device);
ExpertRows checked_rows(const at::Tensor& tokens, const ExpertRows& rows, int64_t experts, int64_t width);

// Each row its own token, with gate 1: experts applied to rows that are gathered already.
ExpertRows rows_in_place(const at::Tensor& rows, const at::Tensor& offsets);

// What the backward pass reads of the hidden layer: the input of its activation, or the slope of the activation there,
// which is enough for the gradient of the tokens without gates and saves computing it again (on the kernels; torch's
// operations keep the input).
enum class KeptHidden : uint8_t { pre_activation, slope };

// The same without autograd, on checked and contiguous arguments. `kept`, if not null, receives what the backward pass
// reads of the hidden layer, [R,F]. add: what becomes of the rows of the result, one per token.
at::Tensor expert_mlp_forward(const at::Tensor& tokens, const ExpertRows& rows, const ExpertMlpWeights& weights,
                              Activation activation, at::Tensor* kept, const ResidualAdd& add = {},
                              KeptHidden what = KeptHidden::pre_activation);

// Undefined unless requested.
struct ExpertMlpGradients {
  at::Tensor tokens, gate;
  ExpertMlpWeights weights;
};
struct ExpertMlpNeeds {
  bool tokens = true, gate = true, weights = true;
};
// grad: [N,D], of the result. kept: from the forward pass, or undefined to recompute it.
ExpertMlpGradients expert_mlp_backward(const at::Tensor& grad, const at::Tensor& tokens, const ExpertRows& rows,
                                       const ExpertMlpWeights& weights, Activation activation, const at::Tensor& kept,
                                       ExpertMlpNeeds needs, KeptHidden what = KeptHidden::pre_activation);

}  // namespace sparsight
