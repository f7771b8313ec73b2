#include "sparsight/nn/glorot.h"

#include <cmath>

namespace sparsight {

void init_glorot_uniform(at::Tensor& parameter, int64_t fan_in, int64_t fan_out, const RandomStream& stream) {
  init_uniform(parameter, std::sqrt(6 / static_cast<double>(fan_in + fan_out)), stream);
}

void GlorotLinearImpl::initialize(const InitRandom& random) {
  init_glorot_uniform(weight, weight.size(1), weight.size(0), random.stream("weight"));
  const torch::NoGradGuard no_grad;
  if (bias.defined()) bias.zero_();
}

}  // namespace sparsight
