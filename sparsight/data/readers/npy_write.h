// Writes NumPy's .npy files.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace sparsight {

// A version 1 .npy file of `array`, int64 or float64, in row-major order.
std::string encode_npy(const at::Tensor& array);

}  // namespace sparsight
