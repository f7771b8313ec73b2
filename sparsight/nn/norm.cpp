#include "sparsight/nn/norm.h"

#include <numeric>

#include "sparsight/nn/packed_weights.h"
#include "sparsight/ops/layer_norm.h"

namespace sparsight {
namespace {

void norm_identity(at::Tensor& weight, at::Tensor& bias) {
  const torch::NoGradGuard no_grad;
  weight.fill_(1);
  bias.zero_();
}

}  // namespace

LayerNormImpl::LayerNormImpl(int64_t width, double epsilon)
    : weight(register_parameter("weight", torch::ones({width}))),
      bias(register_parameter("bias", parameter_zeros({width}))),
      epsilon_(epsilon) {}

at::Tensor LayerNormImpl::forward(const at::Tensor& x) {
  // Under autocast rows may be in half precision beside weights in fp32, which torch takes.
  return at::isReducedFloatingType(x.scalar_type()) ? at::layer_norm(x, {weight.size(0)}, weight, bias, epsilon_)
                                                    : layer_norm(x, weight, bias, epsilon_);
}

RowNorm LayerNormImpl::row_norm() const { return {weight, bias, epsilon_}; }

void LayerNormImpl::initialize(const InitRandom&) { norm_identity(weight, bias); }

engine::Norm packed_norm(const LayerNormImpl& norm) {
  return {to_floats(norm.weight), to_floats(norm.bias), static_cast<float>(norm.epsilon())};
}

GroupNormImpl::GroupNormImpl(int64_t groups, int64_t channels)
    : weight(register_parameter("weight", torch::ones({channels}))),
      bias(register_parameter("bias", parameter_zeros({channels}))),
      groups_(groups) {}

at::Tensor GroupNormImpl::forward(const at::Tensor& x) { return at::group_norm(x, groups_, weight, bias, kEpsilon); }

void GroupNormImpl::initialize(const InitRandom&) { norm_identity(weight, bias); }

GroupNorm group_norm_of_eights(int64_t channels) {
  return GroupNorm(std::gcd(channels, std::max<int64_t>(1, channels / 8)), channels);
}

Cost LayerNormImpl::cost() const { return norm_cost(weight.size(0)); }

Cost GroupNormImpl::cost() const { return norm_cost(weight.size(0)); }

}  // namespace sparsight
