#include "python/csrc/held_ops.h"

#include <torch/types.h>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/ops/held_experts.h"

namespace sparsight::python {
namespace {

HeldExperts held_from(const HeldCall& call, int64_t width) {
  constexpr size_t kTensors = 7;
  if (call.tensors.size() != kTensors) fail("held experts are ", kTensors, " tensors, got ", call.tensors.size());
  const auto tensor = [&](size_t i) {
    const at::Tensor& x = call.tensors[i];
    return x.dim() == 1 && x.numel() == 0 ? at::Tensor() : x;
  };
  HeldExperts held;
  held.type = parse_weight_type(std::string(call.type));
  held.order =
      static_cast<HeldOrder>(position_of(std::string(call.order), held_order_names(), "order of held experts"));
  held.weights = {tensor(0), tensor(5), tensor(1), tensor(6)};
  held.packed = tensor(2);
  held.scale1 = tensor(3);
  held.scale2 = tensor(4);
  const at::Tensor& weights = held.order == HeldOrder::plain ? held.weights.w1 : held.packed;
  held.experts = weights.defined() && weights.dim() > 0 ? weights.size(0) : 0;
  held.width = width;
  held.hidden = call.hidden;
  check_held(held);
  return held;
}

}  // namespace

std::tuple<std::vector<at::Tensor>, std::string> hold_moe_mlp(const at::Tensor& w1, const OptionalTensor& b1,
                                                              const at::Tensor& w2, const OptionalTensor& b2,
                                                              std::string_view type) {
  const HeldExperts held = hold_experts({w1, b1.value_or(at::Tensor()), w2, b2.value_or(at::Tensor())},
                                        parse_weight_type(std::string(type)));
  const auto own = [](const at::Tensor& x, const at::Tensor& source) {
    return x.defined() && x.is_alias_of(source) ? x.clone() : x;
  };
  std::vector<at::Tensor> tensors{
      own(held.weights.w1, w1), own(held.weights.w2, w2), held.packed, held.scale1, held.scale2,
      held.weights.b1,          held.weights.b2};
  for (at::Tensor& x : tensors)
    if (!x.defined()) x = torch::empty({0}, w1.options().requires_grad(false));
  return {tensors, held_order_names()[static_cast<size_t>(held.order)]};
}

at::Tensor held_moe_mlp(const Assignments& assignments, const HeldCall& call, std::string_view activation) {
  if (assignments.tokens.dim() != 2) fail("experts need tokens [N,D], got ", assignments.tokens.sizes());
  const HeldExperts held = held_from(call, assignments.tokens.size(1));
  return held_experts(assignments.tokens, assigned_rows(assignments, held.experts).rows, held,
                      parse_activation(std::string(activation)));
}

}  // namespace sparsight::python
