#include "sparsight/models/vit_block.h"

#include "sparsight/engine/steps/blocks.h"
#include "sparsight/engine/steps/rows.h"
#include "sparsight/moe/experts/recompute.h"
#include "sparsight/nn/dropout.h"

namespace sparsight {
namespace {

// [D], or undefined for ones.
at::Tensor scale_gamma(const LayerScale& scale) { return scale ? scale->gamma : at::Tensor(); }

LayerScale layer_scale(torch::nn::Module& block, const char* name, const VitBlockOptions& options) {
  if (options.layer_scale == 0) return nullptr;
  return block.register_module(name, LayerScale(options.attention.width, options.layer_scale));
}

}  // namespace

VitBlock::VitBlock(const VitBlockOptions& options, const MoeSpec* moe)
    : options_(options),
      norm1_(register_module("norm1", LayerNorm(options.attention.width, options.norm_eps))),
      attn_(register_module("attn", Attention(options.attention))),
      ls1_(layer_scale(*this, "ls1", options)),
      norm2_(register_module("norm2", LayerNorm(options.attention.width, options.norm_eps))),
      mlp_(*this,
           {.path = options.path + ".mlp",
            .width = options.attention.width,
            .mlp_hidden = options.mlp_hidden,
            .can_share_router = true},
           moe),
      ls2_(layer_scale(*this, "ls2", options)) {}

BranchDrop VitBlock::make_drop(const at::Tensor& x, const ModelInput& input, const std::string& name, int64_t tokens,
                               int64_t read) const {
  const auto stream = [&](const char* purpose) { return input.random.stream(options_.path + name + purpose); };
  const TokenRows rows{x.size(0), tokens, read, x.size(2), input.info.image};
  BranchDrop drop;
  if (input.mode.dropout) drop.dropout = token_dropout(rows, options_.dropout, stream(".dropout"));
  if (input.mode.drop_path) drop.row_factor = token_drop_path(rows, options_.drop_path, stream(".drop_path"));
  return drop;
}

DropoutMask VitBlock::hidden_drop(const at::Tensor& x, const TokenLayout& layout, const ModelInput& input,
                                  int64_t read) const {
  if (!input.mode.dropout) return {};
  return token_dropout({x.size(0), layout.per_image, read, options_.mlp_hidden, input.info.image},
                       options_.hidden_dropout, input.random.stream(options_.path + ".mlp.hidden_dropout"));
}

engine::TransformerBlock VitBlock::packed_block(WeightType type) const {
  engine::TransformerBlockWeights weights{packed_norm(*norm1_), packed_linear(*attn_->qkv(), type),
                                          packed_linear(*attn_->proj(), type, scale_gamma(ls1_)), attn_->heads(),
                                          std::nullopt};
  if (attn_->q_norm()) weights.qk_norm = engine::QkNorm{packed_norm(*attn_->q_norm()), packed_norm(*attn_->k_norm())};
  if (const Mlp mlp = mlp_.dense())
    weights.mlp = engine::Mlp{packed_norm(*norm2_), packed_linear(*mlp->fc1(), type),
                              packed_linear(*mlp->fc2(), type, scale_gamma(ls2_)), mlp->activation()};
  return engine::TransformerBlock(std::move(weights));
}

engine::Value VitBlock::compile(engine::ProgramBuilder& builder, engine::Value x, int64_t read) const {
  engine::Shape computed = x.shape;
  const bool dense = static_cast<bool>(mlp_.dense());
  if (dense && read < x.shape.rows()) computed = {.height = read, .columns = x.shape.columns};
  const engine::Value y = builder.add<engine::BlockStep>(x, builder.new_value(computed), packed_block(builder.type()));
  if (dense) return y;
  const engine::Value normed = builder.add<engine::NormStep>(y, builder.new_value(x.shape), packed_norm(*norm2_));
  return mlp_.compile(builder, normed, y, scale_gamma(ls2_), read);
}

at::Tensor VitBlock::attend(const at::Tensor& x, const ModelInput& input, int64_t read) {
  const int64_t tokens = x.size(1), queries = mlp_.dense() ? read : tokens;
  return attn_->forward_residual(x, norm1_, make_drop(x, input, ".attn", tokens, queries), queries, scale_gamma(ls1_));
}

at::Tensor VitBlock::transform(const at::Tensor& x, const TokenLayout& layout, const ModelInput& input,
                               ModelOutput& out, int64_t read) {
  const BranchDrop drop = make_drop(x, input, ".mlp", layout.per_image, read);
  if (Mlp dense = mlp_.dense())
    return dense->forward_residual(x, norm2_, drop, hidden_drop(x, layout, input, read), scale_gamma(ls2_));
  const at::Tensor y = mlp_.forward(norm2_->forward(x), layout, input, out, read);
  return add_residual(ls2_ ? y * ls2_->gamma : y, {x.narrow(1, 0, read), drop});
}

at::Tensor VitBlock::forward_recomputed(const at::Tensor& x, const TokenLayout& layout, const ModelInput& input,
                                        ModelOutput& out, int64_t read) {
  ModelInput kept = input;  // until the backward pass: without what these halves do not read
  kept.images = at::Tensor();
  kept.routings.clear();
  // An MoE layer runs once: its routing and losses leave the block and have gradients of their own.
  const bool dense = static_cast<bool>(mlp_.dense());
  const at::Tensor y = recomputed(*this, {x}, [this, layout, kept, dense, read](const std::vector<at::Tensor>& in) {
    ModelOutput none;
    const at::Tensor attended = attend(in[0], kept, read);
    return dense ? transform(attended, layout, kept, none, read) : attended;
  });
  return dense ? y : transform(y, layout, input, out, read);
}

at::Tensor VitBlock::forward(const at::Tensor& x, const TokenLayout& layout, const ModelInput& input, ModelOutput& out,
                             int64_t read) {
  const auto is_tapped = [&](const char* norm) { return !input.taps.empty() && input.is_tapped(options_.path + norm); };
  const bool taps_norm1 = is_tapped(".norm1"), taps_norm2 = is_tapped(".norm2");
  if (options_.recompute && !taps_norm1 && !taps_norm2) return forward_recomputed(x, layout, input, out, read);
  const at::Tensor y = attend(x, input, read);
  if (taps_norm1) out.taps[options_.path + ".norm1"] = norm1_->forward(x);
  if (taps_norm2) out.taps[options_.path + ".norm2"] = norm2_->forward(y);
  return transform(y, layout, input, out, read);
}

std::vector<NormedLinear> VitBlock::normed_linears() {
  std::vector<NormedLinear> found{{options_.path + ".norm1", norm1_->weight, norm1_->bias, attn_->qkv()->weight}};
  if (const Mlp mlp = mlp_.dense())
    found.push_back({options_.path + ".norm2", norm2_->weight, norm2_->bias, mlp->fc1()->weight});
  return found;
}

std::vector<PartCost> VitBlock::cost(const TokenLayout& layout, const CostOptions& options, const Router* deciding,
                                     int64_t read) const {
  const int64_t tokens = layout.per_image, attended = mlp_.dense() ? read : tokens;
  const Cost residual = elementwise_cost(options_.attention.width);
  const std::string& path = options_.path;
  std::vector<PartCost> parts{{path + ".norm1", on_units(norm1_->cost(), tokens)},
                              {path + ".attn", attn_->cost(tokens, attended) + on_units(residual, attended)}};
  if (ls1_) parts.push_back({path + ".ls1", on_units(ls1_->cost(), attended)});
  parts.push_back({path + ".norm2", on_units(norm2_->cost(), attended)});
  append(parts, mlp_.cost(path + ".mlp", layout, options, deciding, read));
  parts.back().cost = parts.back().cost + on_units(residual, read);
  if (ls2_) parts.push_back({path + ".ls2", on_units(ls2_->cost(), read)});
  return parts;
}

}  // namespace sparsight
