// Tensors of an algorithm's state whose shapes only the first step tells, such as one number per domain.
#pragma once

#include <string>

#include "sparsight/train/algorithm.h"

namespace sparsight {

// Adds `tensor` as `name`; nothing if it is undefined.
void save_tensor(AlgorithmState& state, const std::string& name, const at::Tensor& tensor);
// A copy of the tensor of this name; undefined if there is none.
at::Tensor saved_tensor(const AlgorithmState& state, const std::string& name);

}  // namespace sparsight
