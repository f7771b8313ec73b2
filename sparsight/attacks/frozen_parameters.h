// Parameters that need no gradients for a while, so that a backward pass computes none for them.
#pragma once

#include <vector>

#include <torch/nn/module.h>

namespace sparsight {

// While it lives, no parameter of the module requires a gradient; afterwards those that did do again.
class FrozenParameters {
 public:
  explicit FrozenParameters(torch::nn::Module& module);
  ~FrozenParameters();
  FrozenParameters(const FrozenParameters&) = delete;
  FrozenParameters& operator=(const FrozenParameters&) = delete;

 private:
  std::vector<at::Tensor> frozen_;
};

}  // namespace sparsight
