#include "sparsight/models/vit.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/engine/steps/maps.h"
#include "sparsight/engine/steps/rows.h"
#include "sparsight/models/dense_layers.h"
#include "sparsight/moe/validate_router.h"
#include "sparsight/nn/dropout.h"
#include "sparsight/nn/layer_scale.h"

namespace sparsight {

namespace {

// Published widths, depths and heads, all with mlp_ratio 4.
struct VitSize {
  std::string name;
  int64_t width, depth, heads;
  std::vector<int64_t> patches;
};

const std::vector<VitSize>& vit_sizes() {
  static const std::vector<VitSize> sizes{
      // timm's vit_tiny to vit_huge
      {"tiny", 192, 12, 3, {16}},
      {"small", 384, 12, 6, {32, 16, 14, 8}},
      {"base", 768, 12, 12, {32, 16, 14, 8}},
      {"large", 1024, 24, 16, {32, 16, 14}},
      {"huge", 1280, 32, 16, {14}},
      // V-MoE's own S (Riquelme et al. 2021)
      {"8x512", 512, 8, 8, {32}},
      // between base and large (Puigcerver et al. 2022, "On the Adversarial Robustness of Mixture of Experts")
      {"base+", 832, 15, 13, {32}},
      {"base++", 896, 18, 14, {32}},
      {"base+++", 960, 21, 15, {32}},
      // depth x width (Daxberger et al. 2023, "Mobile V-MoEs")
      {"12x384", 384, 12, 6, {16}},
      {"9x384", 384, 9, 6, {16}},
      {"6x384", 384, 6, 6, {16}},
      {"12x192", 192, 12, 3, {16}},
      {"9x192", 192, 9, 3, {16}},
      {"6x192", 192, 6, 3, {16}},
      {"12x96", 96, 12, 3, {16}},
      {"9x96", 96, 9, 3, {16}},
      {"6x96", 96, 6, 3, {16}},
      {"12x64", 64, 12, 2, {16}},
      {"9x64", 64, 9, 2, {16}},
      {"6x64", 64, 6, 2, {16}},
  };
  return sizes;
}

std::vector<std::string> size_names() {
  std::vector<std::string> names{"custom"};
  for (const VitSize& size : vit_sizes()) names.push_back(size.name);
  return names;
}

}  // namespace

std::vector<NamedSettings> VitOptions::variants() {
  std::vector<NamedSettings> all;
  for (const VitSize& size : vit_sizes())
    for (const int64_t patch : size.patches)
      all.push_back({cat("vit_", size.name, "_patch", patch), {{"size", size.name}, {"patch", patch}}});
  return all;
}

int64_t vit_width(const std::string& size, int64_t otherwise) {
  const auto named = std::ranges::find(vit_sizes(), size, &VitSize::name);
  return named == vit_sizes().end() ? otherwise : named->width;
}

int64_t vit_heads(int64_t width, int64_t depth) {
  for (const VitSize& size : vit_sizes())
    if (size.width == width && size.depth == depth) return size.heads;
  return 0;
}

VitOptions with_preset(VitOptions options, const ImageShape& image) {
  if (options.size != "custom") {
    const VitSize& size = entry_named(options.size, vit_sizes(), "ViT size");
    options.width = size.width, options.depth = size.depth, options.heads = size.heads;
  }
  if (image.height % options.patch != 0 || image.width % options.patch != 0)
    fail_usage("[model] patch ", options.patch, " does not divide images of ", image.height, "x", image.width,
               "; choose a divisor of both sides, or resize with the [transforms] section");
  if (options.stem.size() > 10 || options.patch % (int64_t{1} << options.stem.size()) != 0)
    fail_usage("[model] stem has ", options.stem.size(), " stages that halve the resolution, and patch ", options.patch,
               " is not a multiple of 2^", options.stem.size(), "; shorten stem or choose another patch");
  if (options.distilled && (options.pool != "class" || options.pre_logits))
    fail_usage("[model] distilled is for pool = \"class\" without pre_logits: both its heads read tokens");
  if (options.width % options.heads != 0)
    fail_usage("[model] heads ", options.heads, " does not divide width ", options.width, "; choose a divisor");
  return options;
}

int64_t VitOptions::mlp_hidden() const { return std::llround(static_cast<double>(width) * mlp_ratio); }

void VitOptions::declare(OptionSet& set) {
  set.choice("size", &size, size_names(),
             "a published size, which sets width, depth and heads: timm's, those between base and large, or V-MoE's "
             "and Mobile "
             "V-MoE's depth x width; custom: the settings below");
  set.integer("width", &width, {1, 16384}, "embedding dimension of a token");
  set.integer("depth", &depth, {1, 1000}, "number of blocks");
  set.integer("heads", &heads, {1, 1024}, "attention heads");
  set.real("mlp_ratio", &mlp_ratio, {0.01, 64}, "hidden width of the MLPs as a multiple of width");
  set.tables("layer", &layer,
             "blocks whose MLP has another hidden width: {blocks = [-2, -1], hidden = 1536}, as the dense model that "
             "costs as much as k experts in these blocks");
  set.integer("patch", &patch, {1, 1024}, "patch size in pixels");
  set.integers("stem", &stem, {1, 16384},
               "channels of the stages of residual convolution blocks before the patch embedding (hybrid ViT); each "
               "halves the resolution, so [32, 64] goes with a patch of 4, 8, 12 ...; []: none");
  set.integer("stem_blocks", &stem_blocks, {1, 100}, "residual blocks of each stage of the stem");
  set.choice("stem_norm", &stem_norm, {"group", "batch"},
             "normalisation in the stem: group norm, by which an image does not depend on its batch, or batch norm, "
             "which learns faster");
  set.choice(
      "pool", &pool, {"class", "mean", "map"},
      "head input: the class token, the mean of the patch tokens, or what one learned query reads from the patch "
      "tokens (attention pooling, as SigLIP's)");
  set.flag("qkv_bias", &qkv_bias, "bias of the qkv projection");
  set.flag(
      "qk_norm", &qk_norm,
      "layer norms of the queries and keys of each head, which keep attention logits small in large models (ViT-22B)");
  set.flag("distilled", &distilled,
           "a distillation token with a head of its own beside the class token; logits are the mean of both heads' "
           "(DeiT's distilled models)");
  set.flag("pre_logits", &pre_logits,
           "linear layer of the same width with tanh before the head (V-MoE's representation layer)");
  set.real(
      "layer_scale", &layer_scale, {0, 10},
      "initial value of the learned factors of each residual branch (timm's init_values; 1e-6 in DeiT-III, 1e-5 in "
      "DINOv2); 0: none");
  set.integer("reg_tokens", &reg_tokens, {0, 1024},
              "register tokens after the class token, which no head reads (4 in DINOv2 with registers)");
  set.flag("pre_norm", &pre_norm,
           "layer norm before the first block, after a patch embedding without bias (as in CLIP)");
  set.flag("no_embed_class", &no_embed_class,
           "positions for the patches alone, not for class and register tokens (as in DeiT-III)");
  set.real("norm_eps", &norm_eps, {1e-12, 1},
           "epsilon of the layer norms: 1e-6 in most of timm's vision transformers, 1e-5 in CLIP's");
  set.real("dropout", &dropout, {0, 0.99}, "dropout after the position embedding and each residual branch");
  set.real("hidden_dropout", &hidden_dropout, {0, 0.99},
           "dropout after the activation of each dense MLP; with the same dropout and experts.dropout it follows every "
           "dense layer except qkv, as in ViT");
  set.real("drop_path", &drop_path, {0, 0.99}, "stochastic depth rate of the last block; grows linearly from 0");
  set.flag("recompute", &recompute,
           "keep only the inputs of the blocks and recompute their activations in the backward pass (less memory, "
           "slower); of a block with an MoE layer the attention, its experts with experts.recompute");
  set.choice("pos_resampling", &pos_resampling, {"bicubic", "linear"},
             "how a position embedding of another patch grid is resampled when weights are loaded: antialiased bicubic "
             "(timm), or linear with aligned corners (V-MoE)");
}

Vit::Vit(VitOptions options, const ModelContext& context)
    : ImageModel(context.image, context.pixels), options_(with_preset(std::move(options), context.image)) {
  const int64_t width = options_.width;
  const PatchGrid patches = grid();
  if (has_class_token()) cls_token_ = register_parameter("cls_token", parameter_zeros({1, 1, width}));
  if (options_.distilled) dist_token_ = register_parameter("dist_token", parameter_zeros({1, 1, width}));
  if (options_.reg_tokens > 0)
    reg_token_ = register_parameter("reg_token", parameter_zeros({1, options_.reg_tokens, width}));
  pos_embed_ =
      register_parameter("pos_embed", parameter_zeros({1, embedded_prefix() + patches.height * patches.width, width}));
  patch_embed_ = register_module(
      "patch_embed", PatchEmbedding(PatchEmbeddingOptions{image_.channels, options_.patch, width, options_.stem,
                                                          options_.stem_blocks, options_.stem_norm == "batch",
                                                          /*bias=*/!options_.pre_norm}));
  if (options_.pre_norm) norm_pre_ = register_module("norm_pre", LayerNorm(width, options_.norm_eps));

  const auto blocks = register_module("blocks", std::make_shared<torch::nn::Module>());
  const std::vector<const MoeSpec*> moe = context.moe.layers(options_.depth);
  const std::vector<int64_t> hidden = hidden_of_blocks(options_.layer, options_.depth, options_.mlp_hidden());
  std::vector<std::string> moe_layers;
  for (int64_t i = 0; i < options_.depth; ++i) {
    const MoeSpec* spec = moe[static_cast<size_t>(i)];
    if (spec) {
      moe_layers.push_back(cat("blocks.", i, ".mlp"));
      if (first_moe_block_ < 0) first_moe_block_ = i;
    }
    VitBlockOptions block;
    block.attention = {width, options_.heads, options_.qkv_bias, options_.qk_norm, options_.norm_eps};
    block.mlp_hidden = hidden[static_cast<size_t>(i)];
    block.dropout = options_.dropout;
    block.hidden_dropout = options_.hidden_dropout;
    block.drop_path = options_.depth > 1 ? options_.drop_path * static_cast<double>(i) / (options_.depth - 1.0) : 0;
    block.layer_scale = options_.layer_scale;
    block.norm_eps = options_.norm_eps;
    block.path = cat("blocks.", i);
    block.recompute = options_.recompute;
    blocks_.push_back(blocks->register_module(cat(i), std::make_shared<VitBlock>(block, spec)));
  }
  shared_router_.emplace(*this, context.moe, width, moe_layers);
  norm_ = register_module(norm_name(), LayerNorm(width, options_.norm_eps));
  if (options_.pool == "map")
    attn_pool_ = register_module("attn_pool", AttentionPool(AttentionPoolOptions{.width = width,
                                                                                 .heads = options_.heads,
                                                                                 .mlp_hidden = options_.mlp_hidden(),
                                                                                 .norm_eps = options_.norm_eps}));
  if (options_.pre_logits)  // timm's name is pre_logits.fc
    pre_logits_ = register_module("pre_logits", std::make_shared<torch::nn::Module>())
                      ->register_module("fc", Linear(width, width));
  head_ = register_module("head", Linear(width, image_.classes));
  if (options_.distilled) head_dist_ = register_module("head_dist", Linear(width, image_.classes));
}

// The norm of the tokens that heads read and the heads, of which two become one layer on both tokens.
ImageModel::CompiledOutputs Vit::compile_head(engine::ProgramBuilder& builder, engine::Value x) const {
  const engine::Shape vector = engine::Shape::vector(options_.width * head_tokens());
  if (attn_pool_) {
    x = builder.add<engine::NormStep>(x, builder.new_value(x.shape), packed_norm(*norm_));
    x = attn_pool_->compile(builder, x);
  } else if (!options_.distilled) {
    x = has_class_token() ? builder.add<engine::PoolStep>(x, builder.new_value(vector), engine::PoolStep::Pool::first)
                          : engine::add_mean(builder, x);
    x = builder.add<engine::NormStep>(x, builder.new_value(vector), packed_norm(*norm_));
  } else {
    x = builder.add<engine::NormStep>(x, builder.new_value(x.shape), packed_norm(*norm_));
    x = builder.add<engine::PoolStep>(x, builder.new_value(vector), engine::PoolStep::Pool::first);
  }
  if (pre_logits_) {
    x = engine::add_linear(builder, x, packed_linear(*pre_logits_, WeightType::fp32));
    x = builder.add<engine::ElementwiseStep>(x, engine::Value{}, builder.new_value(vector), engine::Elementwise::tanh);
  }
  if (!options_.distilled) return {x, engine::add_linear(builder, x, packed_linear(*head_, WeightType::fp32))};
  const at::Tensor weight = at::cat({head_->weight, head_dist_->weight}, 1) / 2;
  const at::Tensor bias = (head_->bias + head_dist_->bias) / 2;
  return {x, engine::add_linear(builder, x, packed_linear(weight, bias, WeightType::fp32))};
}

ImageModel::CompiledOutputs Vit::compile_steps(engine::ProgramBuilder& builder) const {
  const torch::NoGradGuard no_grad;
  const engine::Shape tokens{prefix_tokens(), grid().height, grid().width, options_.width};
  engine::Value x =
      patch_embed_->compile(builder, tokens, prefix_tokens() > 0 ? to_floats(prefix()) : std::vector<float>(),
                            to_floats(pos_embed_.slice(1, embedded_prefix())));
  if (norm_pre_) x = builder.add<engine::NormStep>(x, builder.new_value(tokens), packed_norm(*norm_pre_));
  for (int64_t i = 0; i < options_.depth; ++i) {
    if (i == first_moe_block_ && shared_router_->router()) shared_router_->compile(builder, x);
    const bool only_read = i + 1 == options_.depth && has_class_token();
    x = blocks_[static_cast<size_t>(i)]->compile(builder, x, only_read ? head_tokens() : tokens.rows());
  }
  return compile_head(builder, x);
}

Resampling Vit::resampling() const {
  return options_.pos_resampling == "linear" ? Resampling::linear : Resampling::bicubic;
}

PatchGrid Vit::grid() const { return {image_.height / options_.patch, image_.width / options_.patch}; }

std::vector<std::string> Vit::tap_names() const {
  std::vector<std::string> names{"patch_embed"};
  for (size_t i = 0; i < blocks_.size(); ++i) names.push_back(cat("blocks.", i));
  names.emplace_back(norm_name());
  if (attn_pool_) names.emplace_back("attn_pool");
  if (pre_logits_) names.emplace_back("pre_logits");
  return names;
}

at::Tensor Vit::prefix() const {
  at::Tensor tokens = cls_token_;
  if (dist_token_.defined()) tokens = at::cat({tokens, dist_token_}, 1);
  if (reg_token_.defined()) tokens = tokens.defined() ? at::cat({tokens, reg_token_}, 1) : reg_token_;
  return embedded_prefix() > 0 ? tokens + pos_embed_.narrow(1, 0, embedded_prefix()) : tokens;
}

at::Tensor Vit::embed(const ModelInput& input, ModelOutput& out) {
  const int64_t prefix = prefix_tokens(), embedded = embedded_prefix(), patches = pos_embed_.size(1) - embedded;
  at::Tensor x = patch_embed_->forward(input.images, input.mode.batch_statistics);
  tap(input, out, x, "patch_embed");
  if (prefix == 0) return x + pos_embed_;
  x = x + pos_embed_.narrow(1, embedded, patches);
  return at::cat({this->prefix().expand({x.size(0), -1, -1}).to(x.scalar_type()), x}, 1);
}

// Normalising only what the head reads gives timm's result: layer norm treats each token separately.
at::Tensor Vit::pool_tokens(const at::Tensor& x, int64_t prefix, const ModelInput& input, ModelOutput& out) {
  if (options_.pool == "mean") {
    const at::Tensor mean = norm_->forward(x.slice(1, prefix).mean(1));
    tap(input, out, mean, "fc_norm");
    return mean;
  }
  if (attn_pool_ || input.is_tapped("norm")) {
    const at::Tensor normed = norm_->forward(x);
    tap(input, out, normed, "norm");
    if (attn_pool_) {
      const at::Tensor pooled = attn_pool_->forward(normed.slice(1, prefix));
      tap(input, out, pooled, "attn_pool");
      return pooled;
    }
  }
  return norm_->forward(options_.distilled ? x.narrow(1, 0, head_tokens()) : x.select(1, 0)).flatten(1);
}

ModelOutput Vit::run(const ModelInput& input) {
  const at::Tensor& images = input.images;
  ModelOutput out;
  const TokenLayout layout{images.size(0), prefix_tokens() + grid().height * grid().width, prefix_tokens(),
                           grid().height, grid().width};
  at::Tensor x = embed(input, out);
  if (input.mode.dropout) x = dropout(x, options_.dropout, input.random.stream("pos_embed.dropout"), input.info.image);
  if (norm_pre_) x = norm_pre_->forward(x);

  const int64_t last = options_.depth - 1;
  const std::string last_block = cat("blocks.", last);
  const bool reads_all = !cls_token_.defined() || input.is_tapped("norm") || input.is_tapped(last_block) ||
                         input.is_tapped(last_block + ".norm2");
  ModelInput decided = input;
  for (int64_t i = 0; i < options_.depth; ++i) {
    if (i == first_moe_block_ && shared_router_->router()) decided = shared_router_->decide(x, layout, input, out);
    x = blocks_[static_cast<size_t>(i)]->forward(x, layout, decided, out,
                                                 i < last || reads_all ? layout.per_image : head_tokens());
    tap(input, out, x, "blocks.", i);
  }
  out.features = pool_tokens(x, layout.prefix, input, out);
  if (pre_logits_) {
    out.features = at::tanh(pre_logits_->forward(out.features));
    tap(input, out, out.features, "pre_logits");
  }
  return out;
}

at::Tensor Vit::classify(const at::Tensor& features) {
  if (!options_.distilled) return as_logits(head_->forward(features));
  const int64_t width = options_.width;
  return (as_logits(head_->forward(features.narrow(1, 0, width))) +
          as_logits(head_dist_->forward(features.narrow(1, width, width)))) /
         2;
}

void Vit::initialize(const InitRandom& random) {
  if (cls_token_.defined()) init_normal(cls_token_, 1e-6, random.stream("cls_token"));
  if (dist_token_.defined()) init_normal(dist_token_, kVitStd, random.stream("dist_token"));
  if (reg_token_.defined()) init_normal(reg_token_, 1e-6, random.stream("reg_token"));
  init_normal(pos_embed_, kVitStd, random.stream("pos_embed"));
}

std::vector<PartCost> Vit::cost(const CostOptions& options) const {
  const int64_t width = options_.width, patches = grid().height * grid().width, tokens = prefix_tokens() + patches;
  const TokenLayout layout{1, tokens, prefix_tokens(), grid().height, grid().width};
  const int64_t positions = (embedded_prefix() + patches) * width;
  std::vector<PartCost> parts;
  if (has_class_token()) parts.push_back({"cls_token", parameters_cost(width)});
  if (options_.distilled) parts.push_back({"dist_token", parameters_cost(width)});
  if (options_.reg_tokens > 0) parts.push_back({"reg_token", parameters_cost(options_.reg_tokens * width)});
  parts.push_back({"pos_embed", parameters_cost(positions) + elementwise_cost(positions)});
  append(parts, patch_embed_->cost({image_.height, image_.width}));
  if (norm_pre_) parts.push_back({"norm_pre", on_units(norm_pre_->cost(), tokens)});
  const Router* deciding = shared_router_->router();
  for (int64_t i = 0; i < options_.depth; ++i) {
    if (i == first_moe_block_ && deciding)
      parts.push_back({shared_router_->name(), checked_cost(*deciding, shared_router_->name(), layout).cost});
    const bool last = i + 1 == options_.depth, all = !has_class_token() || !options.only_read_tokens;
    append(parts,
           blocks_[static_cast<size_t>(i)]->cost(layout, options, deciding, last && !all ? head_tokens() : tokens));
  }
  const bool all_normed = options.convention.norm_all_tokens || attn_pool_;
  Cost norm = on_units(norm_->cost(), all_normed ? tokens : head_tokens());
  if (options_.pool == "mean") norm = norm + elementwise_cost(patches * width);  // the mean
  parts.push_back({norm_name(), norm});
  if (attn_pool_) parts.push_back({"attn_pool", attn_pool_->cost(patches)});
  if (pre_logits_) parts.push_back({"pre_logits", pre_logits_->cost() + elementwise_cost(width)});
  parts.push_back({"head", head_->cost()});
  if (head_dist_)
    parts.push_back({"head_dist", head_dist_->cost() + elementwise_cost(2 * image_.classes)});  // the mean
  return parts;
}

}  // namespace sparsight
