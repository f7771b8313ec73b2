// Which gradients a backward pass computes.
#pragma once

#include <torch/csrc/autograd/custom_function.h>

namespace sparsight {

// Whether any of the tensors that forward() received as first .. end-1 needs a gradient.
inline bool needs_any_grad(torch::autograd::AutogradContext* context, size_t first, size_t end) {
  for (size_t i = first; i < end; ++i)
    if (context->needs_input_grad(i)) return true;
  return false;
}

}  // namespace sparsight
