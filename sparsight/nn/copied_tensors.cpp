#include "sparsight/nn/copied_tensors.h"

#include "sparsight/nn/linear.h"
#include "sparsight/ops/tensor_versions.h"

namespace sparsight {

std::vector<float> floats_of(const at::Tensor& x) {
  const at::Tensor values = x.detach().to(at::kCPU, at::kFloat).contiguous();
  return {values.const_data_ptr<float>(), values.const_data_ptr<float>() + values.numel()};
}

cpu::PackedLinear packed_linear(const at::Tensor& weight, const at::Tensor& bias, WeightType type) {
  const std::vector<float> biases = bias.defined() ? floats_of(bias) : std::vector<float>();
  return {floats_of(weight).data(), biases.empty() ? nullptr : biases.data(), weight[0].numel(), weight.size(0), type};
}

CopiedTensors::CopiedTensors(std::vector<at::Tensor> tensors)
    : tensors_(std::move(tensors)), copied_version_(total_version(tensors_)) {}

// torch updates running averages without counting a new version of them, but the number of batches is counted.
bool CopiedTensors::is_usable_for(const at::Tensor& x, WeightType type, EngineUse use) const {
  return !at::GradMode::is_enabled() && suits_kernels(x) && total_version(tensors_) == copied_version_ &&
         (type != WeightType::fp32 || engine_of(use) == Engine::kernels);
}

}  // namespace sparsight
