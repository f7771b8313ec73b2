// Elementwise activations of MLPs and experts, with their derivatives for hand-written backward passes.
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "sparsight/kernels/types.h"

namespace sparsight {

// The names that parse_activation knows: "gelu" (exact, by erf), "relu", "silu", "gelu_tanh" (gelu's
// approximation by tanh).
const std::vector<std::string>& activation_names();
Activation parse_activation(const std::string& name);  // raises UsageError for an unknown name
// Arithmetic operations per element, counted as in cost/layer_cost.h.
int64_t activation_operations(Activation activation);

at::Tensor activate(const at::Tensor& x, Activation activation);
// d(loss)/dx from d(loss)/d(activate(x)); `grad` and `x` have the same shape.
at::Tensor activate_backward(const at::Tensor& grad, const at::Tensor& x, Activation activation);

}  // namespace sparsight
