// The global gradient norm, for clipping and for detecting gradients that are not finite.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace sparsight {

// Euclidean norm of all gradients together; parameters without one count as 0. The same bits for any number of threads.
double gradient_norm(const std::vector<at::Tensor>& parameters);

// What gradients of norm `norm` are multiplied by so that it is at most max_norm; 1 if it is.
double clip_factor(double norm, double max_norm);

}  // namespace sparsight
