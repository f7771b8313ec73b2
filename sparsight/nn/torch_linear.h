// A fully connected layer with the initial values of PyTorch's nn.Linear: U(± 1 / sqrt(inputs)), the bias too.
#pragma once

#include "sparsight/nn/linear.h"

namespace sparsight {

class TorchLinearImpl : public LinearImpl {
 public:
  using LinearImpl::LinearImpl;
  void initialize(const InitRandom& random) override;
};
TORCH_MODULE(TorchLinear);

}  // namespace sparsight
