#include "sparsight/train/algorithm.h"

#include <map>

#include "sparsight/io/checkpoint.h"

namespace sparsight {

ModelOutput Algorithm::predict(const ModelInput& input) { return context_.model->forward(input); }

void add_tensors(AlgorithmState& state, std::string_view prefix, const NamedTensors& tensors) {
  for (const auto& [name, tensor] : tensors) state.tensors.emplace_back(std::string(prefix) + name, tensor);
}

void load_tensors(const NamedTensors& tensors, const AlgorithmState& state, std::string_view prefix) {
  const NamedTensors under = tensors_under(prefix, state.tensors);
  const std::map<std::string, at::Tensor> saved(under.begin(), under.end());
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : tensors) {
    const auto found = saved.find(name);
    if (found == saved.end() || found->second.sizes() != tensor.sizes())
      fail("the checkpoint's training state has no ", prefix, name, " of shape ", tensor.sizes(),
           "; resume with the configuration it was trained with");
    tensor.copy_(found->second);
  }
}

}  // namespace sparsight
