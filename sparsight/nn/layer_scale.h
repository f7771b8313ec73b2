// Layer scale (Touvron et al. 2021, "Going deeper with Image Transformers", equation 9): a residual branch times a
// learned factor for each column. Named as in timm: gamma. Letters: moe/axes.md.
#pragma once

#include <torch/nn/pimpl.h>

#include "sparsight/nn/linear.h"
#include "sparsight/nn/packed_weights.h"

namespace sparsight {

class LayerScaleImpl : public torch::nn::Module, public Initialized {
 public:
  LayerScaleImpl(int64_t width, double initial);
  void initialize(const InitRandom& random) override;  // every factor `initial`
  Cost cost() const;                                   // per row

  at::Tensor gamma;  // [D]

 private:
  double initial_;
};
TORCH_MODULE(LayerScale);

// Weight [outputs,inputs] and bias [outputs] of a linear layer, which may be undefined.
struct LinearWeights {
  at::Tensor weight, bias;
};

// The weights of gamma * linear(x), differentiable. A branch whose last layer has them needs no step of its own for
// its scale, neither in the kernels of training nor in packed weights. gamma: [outputs], or undefined for ones.
LinearWeights scaled(const LinearImpl& linear, const at::Tensor& gamma);

// The same weights packed for inference.
cpu::PackedLinear packed_linear(const LinearImpl& linear, WeightType type, const at::Tensor& gamma = {});

}  // namespace sparsight
