#include "sparsight/nn/packed_weights.h"

namespace sparsight {

std::vector<float> to_floats(const at::Tensor& x) {
  if (!x.defined()) return {};
  const at::Tensor values = x.detach().to(at::kCPU, at::kFloat).contiguous();
  return {values.const_data_ptr<float>(), values.const_data_ptr<float>() + values.numel()};
}

cpu::PackedLinear packed_linear(const at::Tensor& weight, const at::Tensor& bias, WeightType type) {
  const std::vector<float> biases = to_floats(bias);
  return {to_floats(weight).data(), biases.empty() ? nullptr : biases.data(), weight[0].numel(), weight.size(0), type};
}

}  // namespace sparsight
