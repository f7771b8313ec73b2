// The global gradient norm, for clipping and for detecting gradients that are not finite.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace sparsight {

// Euclidean norm of all gradients together; parameters without one count as 0.
double gradient_norm(const std::vector<at::Tensor>& parameters);

// Scales all gradients by max_norm / norm if norm, from gradient_norm, is above max_norm.
void clip_gradients(const std::vector<at::Tensor>& parameters, double norm, double max_norm);

}  // namespace sparsight
