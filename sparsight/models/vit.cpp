#include "sparsight/models/vit.h"

#include <cmath>
#include <utility>

#include "sparsight/core/error.h"
#include "sparsight/nn/dropout.h"

namespace sparsight {

VitOptions settled(VitOptions options, const ImageShape& image) {
  // timm's vit_tiny, vit_small and vit_base
  if (options.size == "tiny") options.width = 192, options.depth = 12, options.heads = 3;
  if (options.size == "small") options.width = 384, options.depth = 12, options.heads = 6;
  if (options.size == "base") options.width = 768, options.depth = 12, options.heads = 12;
  if (image.height % options.patch != 0 || image.width % options.patch != 0)
    fail_usage("[model] patch ", options.patch, " does not divide images of ", image.height, "x", image.width,
               "; choose a divisor of both sides, or resize with the [transforms] section");
  if (options.width % options.heads != 0)
    fail_usage("[model] heads ", options.heads, " does not divide width ", options.width);
  return options;
}

int64_t VitOptions::mlp_hidden() const { return std::llround(static_cast<double>(width) * mlp_ratio); }

void VitOptions::declare(OptionSet& set) {
  set.choice("size", &size, {"custom", "tiny", "small", "base"},
             "timm's ViT sizes, which set width, depth and heads; custom: as given below");
  set.integer("width", &width, {1, 16384}, "width of a token");
  set.integer("depth", &depth, {1, 1000}, "number of blocks");
  set.integer("heads", &heads, {1, 1024}, "attention heads");
  set.real("mlp_ratio", &mlp_ratio, {0.01, 64}, "hidden width of the MLPs as a multiple of width");
  set.integer("patch", &patch, {1, 1024}, "side of a patch in pixels");
  set.choice("pool", &pool, {"class", "mean"}, "classify from a class token or from the mean of the patches");
  set.flag("qkv_bias", &qkv_bias, "bias in the attention's input map");
  set.real("dropout", &dropout, {0, 0.99}, "dropout after the position embedding and after each branch");
  set.real("drop_path", &drop_path, {0, 0.99}, "probability of skipping a branch of the last block, growing from 0");
}

Vit::Vit(VitOptions options, const ModelContext& context)
    : ImageModel(context.image, context.pixels), options_(settled(std::move(options), context.image)) {
  const int64_t width = options_.width;
  const PatchGrid patches = grid();
  if (prefix_tokens()) cls_token_ = register_parameter("cls_token", parameter_zeros({1, 1, width}));
  pos_embed_ =
      register_parameter("pos_embed", parameter_zeros({1, prefix_tokens() + patches.height * patches.width, width}));
  patch_embed_ =
      register_module("patch_embed", PatchEmbedding(PatchEmbeddingOptions{image_.channels, options_.patch, width}));

  const auto blocks = register_module("blocks", std::make_shared<torch::nn::Module>());
  const std::vector<const MoeSpec*> moe = context.moe.layers(options_.depth);
  std::vector<std::string> moe_layers;
  for (int64_t i = 0; i < options_.depth; ++i) {
    const MoeSpec* spec = moe[static_cast<size_t>(i)];
    if (spec) {
      moe_layers.push_back(cat("blocks.", i, ".mlp"));
      if (first_moe_block_ < 0) first_moe_block_ = i;
    }
    VitBlockOptions block;
    block.attention = {width, options_.heads, options_.qkv_bias};
    block.mlp_hidden = options_.mlp_hidden();
    block.dropout = options_.dropout;
    block.drop_path = options_.depth > 1 ? options_.drop_path * static_cast<double>(i) / (options_.depth - 1.0) : 0;
    block.path = cat("blocks.", i);
    blocks_.push_back(blocks->register_module(cat(i), std::make_shared<VitBlock>(block, spec)));
  }
  shared_router_.emplace(*this, context.moe, width, moe_layers);
  norm_ = register_module(prefix_tokens() ? "norm" : "fc_norm", LayerNorm(width));
  head_ = register_module("head", Linear(width, image_.classes));
}

PatchGrid Vit::grid() const { return {image_.height / options_.patch, image_.width / options_.patch}; }

std::vector<std::string> Vit::tap_names() const {
  std::vector<std::string> names{"patch_embed"};
  for (size_t i = 0; i < blocks_.size(); ++i) names.push_back(cat("blocks.", i));
  names.emplace_back(prefix_tokens() ? "norm" : "fc_norm");
  return names;
}

ModelOutput Vit::run(const ModelInput& input) {
  const at::Tensor& images = input.images;
  ModelOutput out;
  const TokenLayout layout{images.size(0), pos_embed_.size(1), prefix_tokens(), grid().height, grid().width};
  at::Tensor x = patch_embed_->forward(images);
  tap(input, out, x, "patch_embed");
  if (cls_token_.defined()) x = at::cat({cls_token_.expand({images.size(0), -1, -1}).to(x.scalar_type()), x}, 1);
  x = x + pos_embed_;
  if (input.mode.dropout) x = dropout(x, options_.dropout, input.random.stream("pos_embed.dropout"), input.info.image);

  ModelInput decided = input;
  for (int64_t i = 0; i < options_.depth; ++i) {
    if (i == first_moe_block_ && shared_router_->router()) decided = shared_router_->decide(x, layout, input, out);
    x = blocks_[static_cast<size_t>(i)]->forward(x, layout, decided, out);
    tap(input, out, x, "blocks.", i);
  }
  if (cls_token_.defined() && is_tapped(input, "norm")) tap(input, out, norm_->forward(x), "norm");
  // Normalising only what the head sees gives timm's result: layer norm works on each token alone.
  out.features = norm_->forward(cls_token_.defined() ? x.select(1, 0) : x.mean(1));
  if (!cls_token_.defined()) tap(input, out, out.features, "fc_norm");
  return out;
}

at::Tensor Vit::classify(const at::Tensor& features) { return as_logits(head_->forward(features)); }

void Vit::initialize(const InitRandom& random) {
  if (cls_token_.defined()) init_normal(cls_token_, 1e-6, random.stream("cls_token"));
  init_normal(pos_embed_, kVitStd, random.stream("pos_embed"));
}

}  // namespace sparsight
