#include "sparsight/train/algorithm.h"

namespace sparsight {

ModelOutput Algorithm::predict(const ModelInput& input) { return context_.model->forward(input); }

void add_tensors(AlgorithmState& state, std::string_view prefix, const NamedTensors& tensors) {
  for (const auto& [name, tensor] : tensors) state.tensors.emplace_back(std::string(prefix) + name, tensor);
}

}  // namespace sparsight
