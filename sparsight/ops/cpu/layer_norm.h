// ops/layer_norm.h on the CPU in fp32.
#pragma once

#include "sparsight/ops/layer_norm.h"

namespace sparsight::cpu {

LayerNormOutput layer_norm_forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                   double epsilon, bool needs_moments);
LayerNormGradients layer_norm_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& weight,
                                       const at::Tensor& moments, const at::Tensor& residual, bool needs_weights);

}  // namespace sparsight::cpu
