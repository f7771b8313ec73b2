#include "python/csrc/packed_ops.h"

#include <torch/types.h>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/ops/packed_experts.h"

namespace sparsight::python {
namespace {

PackedExperts packed_from(const PackedCall& call, int64_t width) {
  constexpr size_t kTensors = 7;
  if (call.tensors.size() != kTensors) fail("packed experts are ", kTensors, " tensors, got ", call.tensors.size());
  const auto tensor = [&](size_t i) {
    const at::Tensor& x = call.tensors[i];
    return x.dim() == 1 && x.numel() == 0 ? at::Tensor() : x;
  };
  PackedExperts packed;
  packed.type = parse_weight_type(std::string(call.type));
  packed.order =
      static_cast<PackOrder>(find_position(std::string(call.order), pack_order_names(), "order of packed experts"));
  packed.weights = {tensor(0), tensor(5), tensor(1), tensor(6)};
  packed.storage = tensor(2);
  packed.scale1 = tensor(3);
  packed.scale2 = tensor(4);
  const at::Tensor& weights = packed.order == PackOrder::plain ? packed.weights.w1 : packed.storage;
  packed.experts = weights.defined() && weights.dim() > 0 ? weights.size(0) : 0;
  packed.width = width;
  packed.hidden = call.hidden;
  check_packed(packed);
  return packed;
}

}  // namespace

std::tuple<std::vector<at::Tensor>, std::string> pack_moe_mlp(const at::Tensor& w1, const OptionalTensor& b1,
                                                              const at::Tensor& w2, const OptionalTensor& b2,
                                                              std::string_view type) {
  const PackedExperts packed = pack_expert_weights({w1, b1.value_or(at::Tensor()), w2, b2.value_or(at::Tensor())},
                                                   parse_weight_type(std::string(type)));
  const auto own = [](const at::Tensor& x, const at::Tensor& source) {
    return x.defined() && x.is_alias_of(source) ? x.clone() : x;
  };
  std::vector<at::Tensor> tensors{
      own(packed.weights.w1, w1), own(packed.weights.w2, w2), packed.storage, packed.scale1, packed.scale2,
      packed.weights.b1,          packed.weights.b2};
  for (at::Tensor& x : tensors)
    if (!x.defined()) x = torch::empty({0}, w1.options().requires_grad(false));
  return {tensors, pack_order_names()[static_cast<size_t>(packed.order)]};
}

at::Tensor packed_moe_mlp(const Assignments& assignments, const PackedCall& call, std::string_view activation) {
  if (assignments.tokens.dim() != 2) fail("experts need tokens [N,D], got ", assignments.tokens.sizes());
  const PackedExperts packed = packed_from(call, assignments.tokens.size(1));
  return packed_experts(assignments.tokens, assigned_rows(assignments, packed.experts).rows, packed,
                        parse_activation(std::string(activation)));
}

}  // namespace sparsight::python
