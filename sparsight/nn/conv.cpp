#include "sparsight/nn/conv.h"

#include <cmath>

namespace sparsight {

ConvImpl::ConvImpl(const ConvOptions& options)
    : weight(register_parameter("weight", parameter_zeros({options.out, options.in, options.kernel, options.kernel}))),
      options_(options) {}

at::Tensor ConvImpl::forward(const at::Tensor& x) {
  return at::conv2d(x, weight, {}, options_.stride, options_.kernel / 2);
}

void ConvImpl::initialize(const InitRandom& random) {
  const auto fan_out = static_cast<double>(options_.out * options_.kernel * options_.kernel);
  init_normal(weight, std::sqrt(2 / fan_out), random.stream("weight"));
}

}  // namespace sparsight
