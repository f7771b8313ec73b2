// The reference version of ops/expert_mlp.h, on any device and in any floating type: gather, two grouped linear maps
// with the activation between them, scatter-add.
#pragma once

#include "sparsight/ops/expert_mlp.h"

namespace sparsight::ref {

at::Tensor expert_mlp_forward(const at::Tensor& tokens, const ExpertRows& rows, const ExpertMlpWeights& weights,
                              Activation activation, at::Tensor* pre_activation);
ExpertMlpGradients expert_mlp_backward(const at::Tensor& grad, const at::Tensor& tokens, const ExpertRows& rows,
                                       const ExpertMlpWeights& weights, Activation activation,
                                       const at::Tensor& pre_activation, ExpertMlpNeeds needs);

}  // namespace sparsight::ref
