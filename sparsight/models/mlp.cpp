#include "sparsight/models/mlp.h"

#include <cmath>

#include "sparsight/engine/steps/rows.h"
#include "sparsight/moe/validate_router.h"
#include "sparsight/nn/layer_scale.h"

namespace sparsight {

void MlpModelOptions::declare(OptionSet& set) {
  set.integer("width", &width, {1, 65536}, "width of the residual stream");
  set.integer("depth", &depth, {0, 1000}, "number of blocks");
  set.real("mlp_ratio", &mlp_ratio, {0.01, 64}, "hidden width of the MLPs as a multiple of width");
}

MlpBlock::MlpBlock(const LayerContext& context, const MoeSpec* moe)
    : norm_(register_module("norm", LayerNorm(context.width))), mlp_(*this, context, moe) {}

at::Tensor MlpBlock::forward(const at::Tensor& x, const ModelInput& input, ModelOutput& out) {
  return x + mlp_.forward(norm_->forward(x), TokenLayout{}, input, out);
}

MlpModel::MlpModel(const MlpModelOptions& options, const ModelContext& context)
    : ImageModel(context.image, context.pixels),
      embed_(register_module("embed", Linear(image_.channels * image_.height * image_.width, options.width))),
      norm_(register_module("norm", LayerNorm(options.width))),
      head_(register_module("head", Linear(options.width, image_.classes))) {
  const auto blocks = register_module("blocks", std::make_shared<torch::nn::Module>());
  const std::vector<const MoeSpec*> moe = context.moe.layers(options.depth);
  std::vector<std::string> moe_layers;
  for (int64_t i = 0; i < options.depth; ++i) {
    const MoeSpec* spec = moe[static_cast<size_t>(i)];
    const LayerContext layer{.path = cat("blocks.", i, ".mlp"),
                             .width = options.width,
                             .mlp_hidden = std::llround(static_cast<double>(options.width) * options.mlp_ratio),
                             .can_share_router = true};
    if (spec && moe_layers.empty()) first_moe_block_ = static_cast<size_t>(i);
    if (spec) moe_layers.push_back(layer.path);
    blocks_.push_back(blocks->register_module(cat(i), std::make_shared<MlpBlock>(layer, spec)));
  }
  shared_router_.emplace(*this, context.moe, options.width, moe_layers);
}

std::vector<std::string> MlpModel::tap_names() const {
  std::vector<std::string> names{"embed"};
  for (size_t i = 0; i < blocks_.size(); ++i) names.push_back(cat("blocks.", i));
  names.emplace_back("norm");
  return names;
}

engine::Value MlpBlock::compile(engine::ProgramBuilder& builder, engine::Value x) const {
  return mlp_.compile(builder, builder.add<engine::NormStep>(x, builder.new_value(x.shape), packed_norm(*norm_)), x);
}

ImageModel::CompiledOutputs MlpModel::compile_steps(engine::ProgramBuilder& builder) const {
  engine::Value x = engine::add_linear(builder, builder.planes(), packed_linear(*embed_, builder.type()));
  for (size_t i = 0; i < blocks_.size(); ++i) {
    if (i == first_moe_block_ && shared_router_->router()) shared_router_->compile(builder, x);
    x = blocks_[i]->compile(builder, x);
  }
  x = builder.add<engine::NormStep>(x, builder.new_value(x.shape), packed_norm(*norm_));
  return {x, engine::add_linear(builder, x, packed_linear(*head_, WeightType::fp32))};
}

ModelOutput MlpModel::run(const ModelInput& input) {
  ModelOutput out;
  const at::Tensor embedded = embed_->forward(input.images.flatten(1));
  tap(input, out, embedded, "embed");
  at::Tensor x = embedded.unsqueeze(1);
  ModelInput decided = input;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    if (i == first_moe_block_ && shared_router_->router())
      decided = shared_router_->decide(x, TokenLayout{}, input, out);
    x = blocks_[i]->forward(x, decided, out);
    tap(input, out, x, "blocks.", i);
  }
  out.features = norm_->forward(x.squeeze(1));
  tap(input, out, out.features, "norm");
  return out;
}

namespace {

const TokenLayout kWhole{.images = 1, .per_image = 1};  // an image is one token

}  // namespace

std::vector<PartCost> MlpBlock::cost(const std::string& path, const CostOptions& options,
                                     const Router* deciding) const {
  std::vector<PartCost> parts{{path + ".norm", norm_->cost()}};
  append(parts, mlp_.cost(path + ".mlp", kWhole, options, deciding));
  parts.back().cost = parts.back().cost + elementwise_cost(norm_->weight.size(0));  // the residual
  return parts;
}

std::vector<PartCost> MlpModel::cost(const CostOptions& options) const {
  std::vector<PartCost> parts{{"embed", embed_->cost()}};
  const Router* deciding = shared_router_->router();
  if (deciding) parts.push_back({shared_router_->name(), checked_cost(*deciding, shared_router_->name(), kWhole).cost});
  for (size_t i = 0; i < blocks_.size(); ++i) append(parts, blocks_[i]->cost(cat("blocks.", i), options, deciding));
  parts.push_back({"norm", norm_->cost()});
  parts.push_back({"head", head_->cost()});
  return parts;
}

at::Tensor MlpModel::classify(const at::Tensor& features) { return as_logits(head_->forward(features)); }

}  // namespace sparsight
