// Weights of modules as programs have them (engine/).
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "sparsight/kernels/gemm/packed_linear.h"

namespace sparsight {

// The values as fp32 in memory order, from any device; none of an undefined tensor.
std::vector<float> to_floats(const at::Tensor& x);
// weight: [O,...], an output in each row; bias: [O], or undefined.
cpu::PackedLinear packed_linear(const at::Tensor& weight, const at::Tensor& bias, WeightType type);

}  // namespace sparsight
