#include "sparsight/models/convnext_block.h"

#include <utility>

#include "sparsight/engine/steps/maps.h"
#include "sparsight/engine/steps/rows.h"
#include "sparsight/nn/conv_parts.h"
#include "sparsight/nn/dropout.h"
#include "sparsight/nn/map_rows.h"
#include "sparsight/nn/packed_convs.h"
#include "sparsight/ops/residual_add.h"

namespace sparsight {
namespace {

constexpr int64_t kConvNextKernel = 7, kConvNextMlpRatio = 4;

ConvOptions depthwise_options(int64_t width) {
  return {.in = width,
          .out = width,
          .kernel = kConvNextKernel,
          .bias = true,
          .init = ConvInit::vit_normal,
          .groups = width};
}

}  // namespace

ConvNextBlock::ConvNextBlock(const ConvNextBlockOptions& options, const MoeSpec* moe)
    : options_(options),
      conv_dw_(register_module("conv_dw", Conv(depthwise_options(options.width)))),
      norm_(register_module("norm", LayerNorm(options.width))),
      mlp_(*this,
           {.path = options.path + ".mlp", .width = options.width, .mlp_hidden = kConvNextMlpRatio * options.width},
           moe) {
  if (options.layer_scale > 0) gamma_ = register_parameter("gamma", torch::full({options.width}, options.layer_scale));
}

void ConvNextBlock::initialize(const InitRandom&) {
  const torch::NoGradGuard no_grad;
  if (gamma_.defined()) gamma_.fill_(options_.layer_scale);
}

at::Tensor ConvNextBlock::forward(const at::Tensor& x, const ModelInput& input, ModelOutput& out) {
  const int64_t height = x.size(2), width = x.size(3), positions = height * width;
  TokenLayout layout;
  layout.grid_height = height;
  layout.grid_width = width;
  at::Tensor y = mlp_.forward(norm_->forward(rows_of_map(conv_dw_->forward(x))), layout, input, out);
  if (gamma_.defined()) y = y * gamma_;
  BranchDrop drop;
  if (input.mode.drop_path)
    drop.row_factor = token_drop_path({x.size(0), positions, positions, options_.width, input.info.image},
                                      options_.drop_path, input.random.stream(options_.path + ".drop_path"));
  return map_of_rows(add_residual(y, {rows_of_map(x), drop}), height, width);
}

engine::Value ConvNextBlock::compile(engine::ProgramBuilder& builder, engine::Value x) const {
  std::vector<engine::ConvStep> steps;
  steps.push_back(conv_step(*conv_dw_, builder.type()));
  const engine::Value filtered = engine::add_convs(builder, x, std::move(steps));
  const engine::Value normed = builder.add<engine::NormStep>(filtered, builder.new_value(x.shape), packed_norm(*norm_));
  return mlp_.compile(builder, normed, x, gamma_);
}

std::vector<PartCost> ConvNextBlock::cost(MapSize map, const CostOptions& options) const {
  const TokenLayout layout{1, map.positions(), 0, map.height, map.width};
  const std::string& path = options_.path;
  const std::string shape = map_text(options_.width, map);
  std::vector<PartCost> parts{{path + ".conv_dw", conv_dw_->cost(map), shape},
                              {path + ".norm", on_units(norm_->cost(), map.positions()), shape}};
  append(parts, mlp_.cost(path + ".mlp", layout, options, nullptr));
  parts.back().cost = parts.back().cost + on_units(elementwise_cost(options_.width), map.positions());  // the residual
  if (gamma_.defined())
    parts.push_back({path + ".gamma",
                     on_units(elementwise_cost(options_.width) + parameters_cost(options_.width), map.positions()),
                     shape});
  return parts;
}

}  // namespace sparsight
