#include "sparsight/nn/linear.h"

namespace sparsight {

LinearImpl::LinearImpl(int64_t inputs, int64_t outputs, bool with_bias)
    : weight(register_parameter("weight", parameter_zeros({outputs, inputs}))) {
  if (with_bias) bias = register_parameter("bias", parameter_zeros({outputs}));
}

at::Tensor LinearImpl::forward(const at::Tensor& x) { return at::linear(x, weight, bias); }

void LinearImpl::initialize(const InitRandom& random) {
  init_normal(weight, kVitStd, random.stream("weight"));
  const torch::NoGradGuard no_grad;
  if (bias.defined()) bias.zero_();
}

Cost LinearImpl::cost() const { return linear_cost(weight.size(1), weight.size(0), bias.defined()); }

}  // namespace sparsight
