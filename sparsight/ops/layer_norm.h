// Layer norm over the last axis (Ba et al. 2016). Letters: moe/axes.md; R rows. fp32 on a CPU has kernels, whose
// results, the gradients of weight and bias included, have the same bits for any number of threads.
#pragma once

#include <ATen/core/Tensor.h>

namespace sparsight {

// x: [...,D], floating; weight and bias: [D], of x's type. Returns x's shape: (x - mean) / sqrt(variance + epsilon) *
// weight + bias, with the variance divided by D. Differentiable once. Raises Error for other shapes and types.
at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double epsilon);

// The same without autograd. Tensors are contiguous.
struct LayerNormOutput {
  at::Tensor out;  // [R,D]
  at::Tensor
      moments;  // [R,2], for the backward pass: mean and 1 / sqrt(variance + epsilon); undefined unless requested
};
LayerNormOutput layer_norm_forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                   double epsilon, bool needs_moments);
struct LayerNormGradients {
  at::Tensor x;             // [R,D]
  at::Tensor weight, bias;  // [D]
};
// grad: [R,D], of the result; moments: from layer_norm_forward(). residual: [R,D] or undefined, is added to the
// gradient of x. needs_weights: whether the gradients of weight and bias are defined.
LayerNormGradients layer_norm_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& weight,
                                       const at::Tensor& moments, const at::Tensor& residual = {},
                                       bool needs_weights = true);

}  // namespace sparsight
