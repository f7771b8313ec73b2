// Experts packed for inference: ops/packed_experts.h as tensors and names, with assignments in the form used in Python.
#pragma once

#include <string>
#include <vector>

#include "python/csrc/expert_ops.h"

namespace sparsight::python {

struct PackedCall {
  at::TensorList tensors;  // w1, w2, packed, scale1, scale2, b1, b2 of PackedExperts; [0] for those that are absent
  std::string_view type;   // a name of weight_type_names()
  std::string_view order;  // a name of pack_order_names()
  int64_t hidden;          // F
};

// Returns the tensors of a PackedCall, which share no memory with the weights, and the name of their order.
std::tuple<std::vector<at::Tensor>, std::string> pack_moe_mlp(const at::Tensor& w1, const OptionalTensor& b1,
                                                              const at::Tensor& w2, const OptionalTensor& b2,
                                                              std::string_view type);

// moe_mlp_forward() with packed weights. Raises Error for tensors that pack_moe_mlp() cannot have produced.
at::Tensor packed_moe_mlp(const Assignments& assignments, const PackedCall& packed, std::string_view activation);

}  // namespace sparsight::python
