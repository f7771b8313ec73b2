// The sum of the squares of all elements of some tensors, for the norm of gradients.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace sparsight {

// The tensors are real floating-point ones of any layout. Chunks of a fixed size are summed in order, each in the type
// of the tensor (at least fp32): the same bits for any number of threads. Not finite if an element is not finite, or if
// the squares overflow.
double sum_of_squares(const std::vector<at::Tensor>& tensors);

}  // namespace sparsight
