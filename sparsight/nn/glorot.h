// Initial weights of Glorot & Bengio 2010, "Understanding the difficulty of training deep feedforward neural networks",
// equation 16: uniform within ± sqrt(6 / (fan_in + fan_out)).
#pragma once

#include "sparsight/nn/linear.h"

namespace sparsight {

// In place. The fans of a convolution are the size of its kernel times its channels.
void init_glorot_uniform(at::Tensor& parameter, int64_t fan_in, int64_t fan_out, const RandomStream& stream);

// A fully connected layer with this initialisation and bias 0.
class GlorotLinearImpl : public LinearImpl {
 public:
  using LinearImpl::LinearImpl;
  void initialize(const InitRandom& random) override;
};
TORCH_MODULE(GlorotLinear);

}  // namespace sparsight
