#include "python/csrc/expert_ops.h"

#include <torch/types.h>

#include "python/csrc/backward_tensors.h"
#include "python/csrc/check_index.h"
#include "sparsight/core/error.h"
#include "sparsight/ops/expert_mlp.h"
#include "sparsight/ops/sort_by_expert.h"

namespace sparsight::python {
namespace {

constexpr char kTokens[] = "the tokens'";

at::Tensor given(const OptionalTensor& x) { return x.value_or(at::Tensor()); }

// The token of each assignment: [A].
at::Tensor assignment_tokens(const Assignments& given) {
  const int64_t tokens = given.tokens.size(0);
  if (given.token) {
    if (given.token->dim() != 1 || given.token->numel() != given.expert.numel())
      fail("token must have as many elements as expert, got ", given.token->sizes(), " and ", given.expert.sizes());
    return checked_index(*given.token, "token", 0, tokens);
  }
  if (given.expert.dim() != 2 || given.expert.size(0) != tokens)
    fail("expert must be [N,K] with N = ", tokens, ", or come with token [A]; got ", given.expert.sizes());
  const int64_t k = given.expert.size(1);
  const at::Tensor each = torch::arange(tokens, given.expert.options());
  return k == 1 ? each : each.unsqueeze(1).expand({tokens, k}).reshape({-1});
}

struct Prepared {
  at::Tensor tokens;
  ExpertRows rows;
  ExpertMlpWeights weights;
  Activation activation;
  at::Tensor order;  // [R]: the assignment of each row
};

Prepared prepare(const MoeMlpCall& call) {
  if (call.w1.dim() != 3) fail("expert weights need shapes [E,D,F] and [E,F,D], got w1 ", call.w1.sizes());
  const auto [rows, order] = assigned_rows(call.assignments, call.w1.size(0));
  const at::Tensor b1 = given(call.b1), b2 = given(call.b2);
  Prepared in{call.assignments.tokens.contiguous(),
              rows,
              {call.w1.contiguous(), b1.defined() ? b1.contiguous() : b1, call.w2.contiguous(),
               b2.defined() ? b2.contiguous() : b2},
              parse_activation(std::string(call.activation)),
              order};
  check_weights(in.weights, in.tokens.scalar_type(), in.tokens.device());
  in.rows = checked_rows(in.tokens, in.rows, in.weights.w1.size(0), in.weights.w1.size(1));
  return in;
}

}  // namespace

AssignedRows assigned_rows(const Assignments& given, int64_t experts) {
  if (given.tokens.dim() != 2 || !given.tokens.is_floating_point())
    fail("experts need floating-point tokens [N,D], got ", given.tokens.scalar_type(), " ", given.tokens.sizes());
  if (given.gate.sizes() != given.expert.sizes() || !given.gate.is_floating_point())
    fail("gate must be floating-point numbers of the shape of expert, ", given.expert.sizes(), "; got ",
         given.gate.scalar_type(), " ", given.gate.sizes());
  if (given.kept && (given.kept->sizes() != given.expert.sizes() || given.kept->scalar_type() != torch::kBool))
    fail("kept must be bool of the shape of expert, ", given.expert.sizes(), "; got ", given.kept->scalar_type(), " ",
         given.kept->sizes());
  const at::Tensor expert = checked_index(given.expert, "expert", -1, experts).reshape({-1});
  at::Tensor kept = expert >= 0;
  if (given.kept) kept = kept.logical_and_(given.kept->reshape({-1}));
  const ExpertGroups groups = sort_by_expert(expert, kept, experts);
  const RowMap map = map_rows(assignment_tokens(given), groups.order, given.tokens.size(0));
  return {{map, groups.offsets, given.gate.reshape({-1}).index_select(0, groups.order)}, groups.order};
}

std::tuple<at::Tensor, at::Tensor> moe_mlp_forward(const MoeMlpCall& call, bool keep) {
  const c10::AutoGradMode no_grad(false);
  const Prepared in = prepare(call);
  at::Tensor pre_activation;
  const at::Tensor out =
      expert_mlp_forward(in.tokens, in.rows, in.weights, in.activation, keep ? &pre_activation : nullptr);
  if (!keep) return {out, torch::empty({0}, in.tokens.options())};
  const int64_t rows = in.order.size(0), assignments = call.assignments.expert.numel();
  if (rows < assignments) pre_activation = at::constant_pad_nd(pre_activation, {0, 0, 0, assignments - rows});
  return {out, pre_activation};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> moe_mlp_backward(
    const at::Tensor& grad, const MoeMlpCall& call, const at::Tensor& pre_activation, bool need_tokens, bool need_gate,
    bool need_weights) {
  const c10::AutoGradMode no_grad(false);
  const Prepared in = prepare(call);
  const at::Tensor &tokens = call.assignments.tokens, &gates = call.assignments.gate;
  check_saved(grad, "grad", tokens.sizes(), tokens, kTokens);
  check_saved(pre_activation, "pre_activation", {call.assignments.expert.numel(), in.weights.w1.size(2)}, tokens,
              kTokens);
  const ExpertMlpGradients out = expert_mlp_backward(grad.contiguous(), in.tokens, in.rows, in.weights, in.activation,
                                                     pre_activation.narrow(0, 0, in.order.size(0)).contiguous(),
                                                     {need_tokens, need_gate, need_weights});
  at::Tensor gate;
  if (need_gate)
    gate = torch::zeros({gates.numel()}, gates.options()).index_copy_(0, in.order, out.gate).view(gates.sizes());
  const at::Tensor& x = in.tokens;
  return {or_nothing(out.tokens, x),     or_nothing(gate, gates),       or_nothing(out.weights.w1, x),
          or_nothing(out.weights.b1, x), or_nothing(out.weights.w2, x), or_nothing(out.weights.b2, x)};
}

}  // namespace sparsight::python
