#include "python/csrc/expert_ops.h"

#include <torch/types.h>

#include "python/csrc/check_index.h"
#include "sparsight/core/error.h"
#include "sparsight/ops/expert_mlp.h"
#include "sparsight/ops/sort_by_expert.h"

namespace sparsight::python {
namespace {

at::Tensor given(const OptionalTensor& x) { return x.value_or(at::Tensor()); }

// The token of each assignment: [A].
at::Tensor tokens_of(const MoeMlpCall& call) {
  const int64_t tokens = call.tokens.size(0);
  if (call.token) {
    if (call.token->dim() != 1 || call.token->numel() != call.expert.numel())
      fail("token needs as many numbers as expert, got ", call.token->sizes(), " and ", call.expert.sizes());
    check_index(*call.token, "token", 0, tokens);
    return *call.token;
  }
  if (call.expert.dim() != 2 || call.expert.size(0) != tokens)
    fail("expert must be [N,K] with N = ", tokens, ", or come with token [A]; got ", call.expert.sizes());
  const int64_t k = call.expert.size(1);
  const at::Tensor each = torch::arange(tokens, call.expert.options());
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
  if (call.tokens.dim() != 2) fail("experts need tokens [N,D], got ", call.tokens.sizes());
  if (call.w1.dim() != 3) fail("expert weights need shapes [E,D,F] and [E,F,D], got w1 ", call.w1.sizes());
  if (call.gate.sizes() != call.expert.sizes() || !call.gate.is_floating_point())
    fail("gate must be floating-point numbers of the shape of expert, ", call.expert.sizes(), "; got ",
         call.gate.scalar_type(), " ", call.gate.sizes());
  if (call.kept && (call.kept->sizes() != call.expert.sizes() || call.kept->scalar_type() != torch::kBool))
    fail("kept must be bool of the shape of expert, ", call.expert.sizes(), "; got ", call.kept->scalar_type(), " ",
         call.kept->sizes());
  check_index(call.expert, "expert", -1, call.w1.size(0));
  const at::Tensor expert = call.expert.reshape({-1});
  at::Tensor kept = expert >= 0;
  if (call.kept) kept = kept.logical_and_(call.kept->reshape({-1}));
  const ExpertGroups groups = sort_by_expert(expert, kept, call.w1.size(0));
  const RowMap map = map_rows(tokens_of(call), groups.order, call.tokens.size(0));
  const at::Tensor b1 = given(call.b1), b2 = given(call.b2);
  Prepared in{call.tokens.contiguous(),
              {map, groups.offsets, call.gate.reshape({-1}).index_select(0, groups.order)},
              {call.w1.contiguous(), b1.defined() ? b1.contiguous() : b1, call.w2.contiguous(),
               b2.defined() ? b2.contiguous() : b2},
              parse_activation(std::string(call.activation)),
              groups.order};
  check_weights(in.weights, in.tokens.scalar_type(), in.tokens.device());
  in.rows = checked_rows(in.tokens, in.rows, in.weights.w1.size(0), in.weights.w1.size(1));
  return in;
}

at::Tensor or_nothing(const at::Tensor& x, const at::Tensor& like) {
  return x.defined() ? x.contiguous() : torch::empty({0}, like.options());
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> moe_mlp_forward(const MoeMlpCall& call, bool keep) {
  const c10::AutoGradMode no_grad(false);
  const Prepared in = prepare(call);
  at::Tensor before;
  const at::Tensor out = expert_mlp_forward(in.tokens, in.rows, in.weights, in.activation, keep ? &before : nullptr);
  if (!keep) return {out, torch::empty({0}, in.tokens.options())};
  const int64_t rows = in.order.size(0), places = call.expert.numel();
  if (rows < places) before = at::constant_pad_nd(before, {0, 0, 0, places - rows});
  return {out, before};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> moe_mlp_backward(
    const at::Tensor& grad, const MoeMlpCall& call, const at::Tensor& before, bool need_tokens, bool need_gate,
    bool need_weights) {
  const c10::AutoGradMode no_grad(false);
  const Prepared in = prepare(call);
  if (grad.sizes() != call.tokens.sizes() || grad.scalar_type() != call.tokens.scalar_type())
    fail("the gradient of the experts' output has the shape of tokens, ", call.tokens.sizes(), "; got ", grad.sizes());
  const ExpertMlpGradients out =
      expert_mlp_backward(grad.contiguous(), in.tokens, in.rows, in.weights, in.activation,
                          before.narrow(0, 0, in.order.size(0)), {need_tokens, need_gate, need_weights});
  at::Tensor gate;
  if (need_gate)
    gate = torch::zeros({call.gate.numel()}, call.gate.options())
               .index_copy_(0, in.order, out.gate)
               .view(call.gate.sizes());
  const at::Tensor& x = in.tokens;
  return {or_nothing(out.tokens, x),     or_nothing(gate, call.gate),   or_nothing(out.weights.w1, x),
          or_nothing(out.weights.b1, x), or_nothing(out.weights.w2, x), or_nothing(out.weights.b2, x)};
}

}  // namespace sparsight::python
