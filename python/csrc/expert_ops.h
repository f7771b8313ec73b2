// The expert operators: ops/expert_mlp.h, with assignments in the form used in Python. Letters: moe/axes.md.
#pragma once

#include <optional>
#include <string_view>
#include <tuple>

#include "sparsight/ops/expert_mlp.h"

namespace sparsight::python {

using OptionalTensor = std::optional<at::Tensor>;

struct Assignments {
  const at::Tensor& tokens;     // [N,D]
  const at::Tensor& expert;     // [N,K], or [A] with `token`; int64, -1 for none
  const at::Tensor& gate;       // like `expert`
  const OptionalTensor& token;  // [A] int64
  const OptionalTensor& kept;   // like `expert`, bool
};

struct AssignedRows {
  ExpertRows rows;
  at::Tensor order;  // [R]: the assignment of each row
};

// Raises Error if the assignments' shapes do not match, or an index does not fit `experts`.
AssignedRows assigned_rows(const Assignments& given, int64_t experts);

struct MoeMlpCall {
  Assignments assignments;
  const at::Tensor& w1;         // [E,D,F]
  const OptionalTensor& b1;     // [E,F]
  const at::Tensor& w2;         // [E,F,D]
  const OptionalTensor& b2;     // [E,D]
  std::string_view activation;  // a name of activation_names()
};

// Returns the sum over each token's kept assignments of gate * expert(token), [N,D]. With `keep` it also returns the
// hidden layer's pre-activation, [A,F], grouped by expert and zero-padded after the last kept row; otherwise [0].
std::tuple<at::Tensor, at::Tensor> moe_mlp_forward(const MoeMlpCall& call, bool keep);

// Gradients of tokens, gate, w1, b1, w2, b2; [0] for those that are absent or not needed. pre_activation: from
// moe_mlp_forward().
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> moe_mlp_backward(
    const at::Tensor& grad, const MoeMlpCall& call, const at::Tensor& pre_activation, bool need_tokens, bool need_gate,
    bool need_weights);

}  // namespace sparsight::python
