#include "sparsight/dg/algorithms/saved_tensor.h"

namespace sparsight {

void save_tensor(AlgorithmState& state, const std::string& name, const at::Tensor& tensor) {
  if (tensor.defined()) state.tensors.emplace_back(name, tensor.detach());
}

at::Tensor saved_tensor(const AlgorithmState& state, const std::string& name) {
  for (const auto& [other, tensor] : state.tensors)
    if (other == name) return tensor.clone();
  return {};
}

}  // namespace sparsight
