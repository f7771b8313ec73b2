#include "sparsight/nn/torch_linear.h"

#include "sparsight/nn/weight_init.h"

namespace sparsight {

void TorchLinearImpl::initialize(const InitRandom& random) {
  init_weights(weight, bias, {weight.size(1), weight.size(0)}, {.init = "torch_linear"}, random.stream("weight"),
               random.stream("bias"));
}

}  // namespace sparsight
