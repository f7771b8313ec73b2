#include "sparsight/models/map_moe.h"

#include "sparsight/engine/steps/rows.h"
#include "sparsight/nn/map_rows.h"

namespace sparsight {

MapMoe::MapMoe(const LayerContext& context, const MoeSpec& moe)
    : norm_(register_module("norm", LayerNorm(context.width))), mlp_(*this, context, &moe) {}

at::Tensor MapMoe::forward(const at::Tensor& x, const ModelInput& input, ModelOutput& out) {
  TokenLayout layout;
  layout.grid_height = x.size(2);
  layout.grid_width = x.size(3);
  const at::Tensor y = mlp_.forward(norm_->forward(rows_of_map(x)), layout, input, out);
  return x + map_of_rows(y, x.size(2), x.size(3));
}

engine::Value MapMoe::compile(engine::ProgramBuilder& builder, engine::Value x) const {
  return mlp_.compile(builder, builder.add<engine::NormStep>(x, builder.new_value(x.shape), packed_norm(*norm_)), x);
}

std::vector<PartCost> MapMoe::cost(MapSize map, const CostOptions& options) const {
  const TokenLayout layout{1, map.positions(), 0, map.height, map.width};
  std::vector<PartCost> parts{{"moe.norm", on_units(norm_->cost(), layout.per_image)}};
  append(parts, mlp_.cost("moe.mlp", layout, options, nullptr));
  const Cost residual = elementwise_cost(norm_->weight.size(0));
  parts.back().cost = parts.back().cost + on_units(residual, layout.per_image);
  return parts;
}

std::shared_ptr<MapMoe> register_map_moe(torch::nn::Module& model, const MoeSpec& moe, int64_t channels) {
  const MoeSpec* spec = moe.layers(1)[0];
  if (!spec) return nullptr;
  return model.register_module("moe", std::make_shared<MapMoe>(LayerContext{"moe.mlp", channels, 2 * channels}, *spec));
}

}  // namespace sparsight
