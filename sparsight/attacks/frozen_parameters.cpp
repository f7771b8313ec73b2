#include "sparsight/attacks/frozen_parameters.h"

namespace sparsight {

FrozenParameters::FrozenParameters(torch::nn::Module& module) {
  for (at::Tensor& parameter : module.parameters()) {
    if (!parameter.requires_grad()) continue;
    parameter.set_requires_grad(false);
    frozen_.push_back(parameter);
  }
}

FrozenParameters::~FrozenParameters() {
  for (at::Tensor& parameter : frozen_) parameter.set_requires_grad(true);
}

}  // namespace sparsight
