// The global gradient norm: clipping by it, and noticing gradients that are not finite.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace sparsight {

// Euclidean norm of all gradients together; parameters without one count as 0.
double gradient_norm(const std::vector<at::Tensor>& parameters);

// Scales all gradients by max_norm / norm where norm, as returned by gradient_norm, is larger than max_norm.
void clip_gradients(const std::vector<at::Tensor>& parameters, double norm, double max_norm);

}  // namespace sparsight
