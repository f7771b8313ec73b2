#include "sparsight/models/model_cost.h"

#include <algorithm>

#include "sparsight/core/config.h"
#include "sparsight/models/register_models.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/nn/parameter_memory.h"

namespace sparsight {
namespace {

std::shared_ptr<ImageModel> make_configured(const Json& resolved, const ImageShape& image) {
  return make_component(models(), resolved, "model", ModelContext{image, read_moe_spec(resolved)});
}

}  // namespace

std::vector<PartCost> model_cost(const Json& resolved, const ImageShape& image, const CostOptions& options) {
  const MetaParameters without_memory;
  return make_configured(resolved, image)->cost(options);
}

std::vector<ExpertExchange> expert_exchanges(const Json& resolved, const ImageShape& image) {
  const MetaParameters without_memory;
  const std::shared_ptr<ImageModel> model = make_configured(resolved, image);
  const std::vector<PartCost> parts = model->cost({});
  std::vector<ExpertExchange> exchanges;
  for (const auto& module : model->modules(/*include_self=*/false)) {
    const auto layer = std::dynamic_pointer_cast<MoeLayer>(module);
    if (!layer) continue;
    const auto part = std::ranges::find(parts, layer->path() + ".experts", &PartCost::part);
    if (part == parts.end()) continue;
    const int64_t experts = layer->expert_count();
    const Cost row = layer->experts().cost({.experts = experts, .tokens = 1, .rows = 1, .active = 1, .touched = 1});
    const double rows = row.multiply_adds == 0
                            ? 0
                            : static_cast<double>(part->cost.multiply_adds) / static_cast<double>(row.multiply_adds);
    exchanges.push_back({layer->path(), rows, layer->width(), layer->outputs(), experts, part->cost.parameters});
  }
  return exchanges;
}

}  // namespace sparsight
