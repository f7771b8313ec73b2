// What the inference copies of layers (engine/) are made from: a copy is used until one of the
// tensors changes that it is a copy of.
#pragma once

#include <vector>

#include <torch/nn/module.h>

#include "sparsight/core/engines.h"
#include "sparsight/kernels/gemm/packed_linear.h"

namespace sparsight {

// The parameters and buffers that the outputs of modules depend on.
template <class... Modules>
std::vector<at::Tensor> tensors_of(const Modules&... modules) {
  std::vector<at::Tensor> all;
  const auto add = [&](const torch::nn::Module& module) {
    for (const at::Tensor& t : module.parameters()) all.push_back(t);
    for (const at::Tensor& t : module.buffers()) all.push_back(t);
  };
  (add(modules), ...);
  return all;
}

// The values as fp32 in memory order, from any device.
std::vector<float> floats_of(const at::Tensor& x);
// weight: [O,...], an output in each row; bias: [O], or undefined.
cpu::PackedLinear packed_linear(const at::Tensor& weight, const at::Tensor& bias, WeightType type);

class CopiedTensors {
 public:
  CopiedTensors() = default;
  explicit CopiedTensors(std::vector<at::Tensor> tensors);

  // Whether a copy packed as `type` can be used for x: no tensor has been written to, no gradients are wanted, x is
  // fp32 on a CPU without autocast, and the kernels are to compute layers of this use. Weights in fewer bits than fp32
  // have no other form.
  bool is_usable_for(const at::Tensor& x, WeightType type, EngineUse use) const;

 private:
  std::vector<at::Tensor> tensors_;
  int64_t copied_version_ = 0;
};

}  // namespace sparsight
