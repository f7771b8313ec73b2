#include "sparsight/models/vit_block.h"

#include "sparsight/nn/dropout.h"

namespace sparsight {

VitBlock::VitBlock(const VitBlockOptions& options, const MoeSpec* moe)
    : options_(options),
      norm1_(register_module("norm1", LayerNorm(options.attention.width))),
      attn_(register_module("attn", Attention(options.attention))),
      norm2_(register_module("norm2", LayerNorm(options.attention.width))),
      mlp_(*this,
           {.path = options.path + ".mlp",
            .width = options.attention.width,
            .mlp_hidden = options.mlp_hidden,
            .can_share_router = true},
           moe) {}

at::Tensor VitBlock::regularize(const at::Tensor& branch, const ModelInput& input, const std::string& name) const {
  const auto stream = [&](const char* purpose) { return input.random.stream(options_.path + name + purpose); };
  const at::Tensor& image = input.info.image;
  at::Tensor x = branch;
  if (input.mode.dropout) x = dropout(x, options_.dropout, stream(".dropout"), image);
  if (input.mode.drop_path) x = drop_path(x, options_.drop_path, stream(".drop_path"), image);
  return x;
}

at::Tensor VitBlock::forward(const at::Tensor& x, const TokenLayout& layout, const ModelInput& input,
                             ModelOutput& out) {
  const at::Tensor mixed = x + regularize(attn_->forward(norm1_->forward(x)), input, ".attn");
  return mixed + regularize(mlp_.forward(norm2_->forward(mixed), layout, input, out), input, ".mlp");
}

std::vector<PartCost> VitBlock::cost(const TokenLayout& layout, const CostOptions& options,
                                     const Router* deciding) const {
  const int64_t tokens = layout.per_image;
  const Cost residual = elementwise_cost(checked_product(tokens, options_.attention.width));
  const std::string& path = options_.path;
  std::vector<PartCost> parts{{path + ".norm1", on_units(norm1_->cost(), tokens)},
                              {path + ".attn", attn_->cost(tokens) + residual},
                              {path + ".norm2", on_units(norm2_->cost(), tokens)}};
  append(parts, mlp_.cost(path + ".mlp", layout, options, deciding));
  parts.back().cost = parts.back().cost + residual;
  return parts;
}

}  // namespace sparsight
