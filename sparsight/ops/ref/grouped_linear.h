// The reference version of ops/grouped_linear.h, on any device and in any type: one matrix product per expert.
#pragma once

#include "sparsight/ops/grouped_linear.h"

namespace sparsight::ref {

at::Tensor grouped_linear_forward(const at::Tensor& rows, const at::Tensor& offsets, const at::Tensor& weight,
                                  const at::Tensor& bias);
// The same, but of operations that autograd differentiates any number of times. offsets: on the CPU.
at::Tensor grouped_linear(const at::Tensor& rows, const at::Tensor& offsets, const at::Tensor& weight,
                          const at::Tensor& bias);
GroupedLinearGradients grouped_linear_backward(const at::Tensor& grad, const at::Tensor& rows,
                                               const at::Tensor& offsets, const at::Tensor& weight,
                                               GroupedLinearNeeds needs);

}  // namespace sparsight::ref
