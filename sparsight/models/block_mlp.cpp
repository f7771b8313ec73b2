#include "sparsight/models/block_mlp.h"

#include "sparsight/core/error.h"
#include "sparsight/engine/steps/rows.h"
#include "sparsight/moe/finish_routing.h"
#include "sparsight/nn/layer_scale.h"

namespace sparsight {
namespace {

// by_image: [B,S], or undefined. Returns [N].
at::Tensor of_tokens(const at::Tensor& by_image, const TokenLayout& layout, const char* name) {
  if (!by_image.defined()) return by_image;
  if (by_image.dim() != 2 || by_image.size(0) != layout.images || by_image.size(1) != layout.per_image)
    fail("ImageInfo::", name, " has shape ", by_image.sizes(), ", expected [", layout.images, ", ", layout.per_image,
         "]: one value for each token of the layer");
  return by_image.reshape({-1});
}

}  // namespace

RoutingContext routing_context(const ImageInfo& info, const TokenLayout& layout) {
  RoutingContext context;
  context.image = info.image;
  context.group = info.group;
  context.target = info.target;
  context.token_id = of_tokens(info.token_id, layout, "token_id");
  context.priority = of_tokens(info.priority, layout, "priority");
  return context;
}

void append_routing(Routing routing, ModelOutput& out) {
  for (NamedLoss& loss : routing.losses) out.losses.push_back(std::move(loss));
  routing.losses.clear();
  if (routing.soft)
    out.soft_routings.push_back(*routing.soft);
  else
    out.routings.push_back(std::move(routing));
}

MoeOutput run_moe(MoeLayer& layer, const at::Tensor& tokens, const TokenLayout& layout, const ModelInput& input,
                  ModelOutput& out, std::optional<int64_t> read) {
  MoeInput moe{tokens, layout, input.mode, input.random, routing_context(input.info, layout)};
  const auto given = input.routings.find(layer.path());
  MoeOutput result;
  result.routing = given == input.routings.end() ? layer.route(moe) : given->second;
  if (input.pre_experts_hook) input.pre_experts_hook(layer, moe, result.routing);
  result.tokens =
      layer.apply(moe, read && *read < layout.per_image ? with_first_tokens(result.routing, *read) : result.routing);
  if (layer.own_router()) append_routing(result.routing, out);  // else the model-wide router has done so
  return result;
}

BlockMlp::BlockMlp(torch::nn::Module& owner, const LayerContext& context, const MoeSpec* moe) {
  if (moe)
    moe_ = owner.register_module("mlp", std::make_shared<MoeLayer>(*moe, context));
  else
    mlp_ = owner.register_module("mlp", Mlp(MlpOptions{context.width, context.mlp_hidden}));
}

at::Tensor BlockMlp::forward(const at::Tensor& x, TokenLayout layout, const ModelInput& input, ModelOutput& out,
                             std::optional<int64_t> read) {
  if (!moe_) return mlp_->forward(read ? x.narrow(1, 0, *read) : x);
  layout.images = x.size(0);
  layout.per_image = x.size(1);
  const at::Tensor y = run_moe(*moe_, x.reshape({-1, x.size(2)}), layout, input, out, read).tokens.view_as(x);
  return read ? y.narrow(1, 0, *read) : y;
}

engine::Value BlockMlp::compile(engine::ProgramBuilder& builder, engine::Value tokens, engine::Value residual,
                                const at::Tensor& factor, std::optional<int64_t> read) const {
  if (moe_) return moe_->compile(builder, tokens, residual, factor, read);
  engine::Shape hidden = tokens.shape;
  hidden.columns = mlp_->fc1()->weight.size(0);
  const engine::Value active =
      builder.add<engine::LinearStep>(tokens, engine::Value{}, builder.new_value(hidden),
                                      packed_linear(*mlp_->fc1(), builder.type()), mlp_->activation());
  return builder.add<engine::LinearStep>(active, residual, builder.new_value(tokens.shape),
                                         packed_linear(*mlp_->fc2(), builder.type(), factor));
}

std::vector<PartCost> BlockMlp::cost(const std::string& path, const TokenLayout& layout, const CostOptions& options,
                                     const Router* deciding, std::optional<int64_t> read) const {
  if (!moe_) return {{path, on_units(mlp_->cost(), read.value_or(layout.per_image))}};
  std::vector<PartCost> parts = moe_->cost(layout, options, deciding);
  if (read)
    for (PartCost& part : parts)
      if (part.part == path + ".experts")
        part.cost = on_average(part.cost, static_cast<double>(*read) / static_cast<double>(layout.per_image));
  return parts;
}

}  // namespace sparsight
