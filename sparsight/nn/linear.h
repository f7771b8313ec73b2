// A fully connected layer, with the parameters of torch.nn.Linear.
#pragma once

#include <torch/nn/pimpl.h>

#include "sparsight/cost/layer_cost.h"
#include "sparsight/nn/init.h"
#include "sparsight/nn/norm.h"

namespace sparsight {

// Whether the kernels of ops/ can take this input: fp32 on a CPU, under autocast only if they multiply bf16
// (ops/product_type.h). Other layers are ATen's.
bool suits_kernels(const at::Tensor& x);

// x: [...,inputs], weight: [outputs,inputs], bias: [outputs] or undefined. Returns [...,outputs].
at::Tensor fully_connected(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

class LinearImpl : public torch::nn::Module, public Initialized {
 public:
  LinearImpl(int64_t inputs, int64_t outputs, bool with_bias = true);
  at::Tensor forward(const at::Tensor& x);             // [...,inputs] -> [...,outputs]
  void initialize(const InitRandom& random) override;  // weight N(0, 0.02²), bias 0
  Cost cost() const;                                   // per row

  at::Tensor weight;  // [outputs,inputs]
  at::Tensor bias;    // [outputs] or undefined
};
TORCH_MODULE(Linear);

// linear(norm(x)) without keeping norm(x) for the backward pass. x: [...,inputs] -> [...,outputs].
at::Tensor fully_connected_of_norm(const at::Tensor& x, LayerNormImpl& norm, LinearImpl& linear);

}  // namespace sparsight
