#include "sparsight/nn/layer_scale.h"

namespace sparsight {

LayerScaleImpl::LayerScaleImpl(int64_t width, double initial)
    : gamma(register_parameter("gamma", torch::full({width}, initial))), initial_(initial) {}

void LayerScaleImpl::initialize(const InitRandom&) {
  const torch::NoGradGuard no_grad;
  gamma.fill_(initial_);
}

Cost LayerScaleImpl::cost() const { return elementwise_cost(gamma.size(0)) + parameters_cost(gamma.size(0)); }

LinearWeights scaled(const LinearImpl& linear, const at::Tensor& gamma) {
  if (!gamma.defined()) return {linear.weight, linear.bias};
  return {linear.weight * gamma.unsqueeze(1), linear.bias.defined() ? linear.bias * gamma : linear.bias};
}

cpu::PackedLinear packed_linear(const LinearImpl& linear, WeightType type, const at::Tensor& gamma) {
  const LinearWeights weights = scaled(linear, gamma);
  return packed_linear(weights.weight, weights.bias, type);
}

}  // namespace sparsight
