#include "sparsight/models/expert_weights.h"

#include "sparsight/models/shared_router.h"
#include "sparsight/moe/moe_layer.h"

namespace sparsight {
namespace {

int64_t count_parameters(const torch::nn::Module& module) {
  int64_t count = 0;
  for (const at::Tensor& parameter : module.parameters()) count += parameter.numel();
  return count;
}

}  // namespace

ExpertWeights expert_weights(const ImageModel& model) {
  ExpertWeights weights{count_parameters(model), {}};
  for (const auto& module : model.modules(/*include_self=*/false)) {
    auto* layer = dynamic_cast<MoeLayer*>(module.get());
    if (!layer) continue;
    const int64_t experts = count_parameters(layer->experts());
    const std::string& decision = layer->own_router() ? layer->routing_name() : SharedRouter::routing();
    weights.of_expert[decision] += experts / (layer->expert_count() / layer->expert_ranks().parts->size());
    weights.other -= experts;
  }
  return weights;
}

}  // namespace sparsight
