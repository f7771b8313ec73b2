#include "sparsight/models/expert_block.h"

#include <utility>

#include "sparsight/core/error.h"
#include "sparsight/engine/steps/maps.h"
#include "sparsight/engine/steps/rows.h"

namespace sparsight {
namespace {

const TokenLayout kOneTokenPerImage{.images = 1, .per_image = 1};

}  // namespace

MapSize ConvBlockRecipe::output(MapSize input) const {
  return {(input.height + stride - 1) / stride, (input.width + stride - 1) / stride};
}

ExpertBlock::ExpertBlock(const ConvBlockRecipe& recipe, const MoeSpec& moe, const std::string& path, MapSize map)
    : shortcut_(recipe.shortcut),
      relu_(recipe.relu),
      in_{recipe.in, map},
      out_{recipe.out, recipe.output(map)},
      projection_name_(recipe.projection_name) {
  for (const auto& [name, hidden] :
       {std::pair{"hidden", moe.options.hidden}, std::pair{"shared_hidden", moe.options.shared_hidden}})
    if (hidden > 0)
      fail_usage("[moe] ", name, " = ", hidden, ", but experts of whole images are copies of ", path,
                 ", with its widths; set moe.", name, " = 0");
  if (shortcut_ == Shortcut::projection) projection_ = register_module(projection_name_, recipe.projection());
  MoeSpec spec = moe;
  spec.make_kind = [&recipe, this](const ExpertShape& shape) {
    return std::make_shared<BlockExperts>(shape.experts, in_, out_, [&] { return recipe.make(/*branch=*/true); });
  };
  const LayerContext context{.path = path + ".moe",
                             .width = in_.numbers(),
                             .mlp_hidden = recipe.out,
                             .outputs = out_.numbers(),
                             .can_share_router = true};
  moe_ = register_module("moe", std::make_shared<MoeLayer>(spec, context));
}

at::Tensor ExpertBlock::forward(const at::Tensor& x, const ModelInput& input, ModelOutput& out) {
  const int64_t images = x.size(0);
  TokenLayout layout = kOneTokenPerImage;
  layout.images = images;
  at::Tensor y = run_moe(*moe_, x.reshape({images, in_.numbers()}), layout, input, out)
                     .tokens.view({images, out_.channels, out_.size.height, out_.size.width});
  if (shortcut_ != Shortcut::none) y = y + (projection_ ? projection_->forward(x, input.mode.batch_statistics) : x);
  return relu_ ? at::relu(y) : y;
}

engine::Value ExpertBlock::compile(engine::ProgramBuilder& builder, engine::Value x) const {
  const engine::Value whole{x.number, engine::Shape::vector(x.shape.numbers())};  // an image is one token
  engine::Value y = moe_->compile(builder, whole, engine::Value{}, {});
  y.shape = {.height = out_.size.height, .width = out_.size.width, .columns = out_.channels};
  engine::Value shortcut;
  if (shortcut_ != Shortcut::none)
    shortcut = projection_ ? engine::add_convs(builder, x, projection_->conv_steps(builder.type())) : x;
  if (!shortcut.exists() && !relu_) return y;
  return builder.add<engine::ElementwiseStep>(y, shortcut, builder.new_value(y.shape),
                                              relu_ ? engine::Elementwise::relu : engine::Elementwise::identity);
}

std::vector<PartCost> ExpertBlock::cost(const std::string& path, MapSize& map, const CostOptions& options,
                                        const Router& deciding) const {
  std::vector<PartCost> parts = moe_->cost(kOneTokenPerImage, options, &deciding);
  const int64_t operations = (shortcut_ == Shortcut::none ? 0 : 1) + (relu_ ? 1 : 0);
  parts.front().cost = parts.front().cost + on_units(elementwise_cost(out_.numbers()), operations);
  if (projection_) {
    MapSize from = map;
    append(parts, projection_->cost(path + "." + projection_name_, from));
  }
  map = out_.size;
  for (PartCost& part : parts)
    if (part.output.empty()) part.output = map_text(out_.channels, map);
  return parts;
}

}  // namespace sparsight
