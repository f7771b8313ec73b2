#include "sparsight/analysis/vit_cost.h"

namespace sparsight {
namespace {

Cost only_parameters(int64_t count) { return {0, count}; }

// Per image: the two projections of every token, and the products of queries with keys and of weights with values.
Cost attention_cost(int64_t tokens, int64_t width, bool qkv_bias) {
  const Cost projections = linear_cost(width, 3 * width, qkv_bias) + linear_cost(width, width, true);
  return on_units(projections, tokens) + Cost{2 * tokens * tokens * width, 0};
}

}  // namespace

std::vector<PartCost> vit_cost(const VitShape& vit) {
  const int64_t width = vit.tokens_width, tokens = vit.tokens();
  const Cost mlp = mlp_cost({.width = width, .hidden = vit.mlp_hidden, .bias = true});
  std::vector<PartCost> parts;
  if (vit.class_token) parts.push_back({"cls_token", only_parameters(width)});
  parts.push_back({"pos_embed", only_parameters(tokens * width)});
  parts.push_back(
      {"patch_embed", on_units(linear_cost(vit.channels * vit.patch * vit.patch, width, true), vit.patches())});
  for (int64_t i = 0; i < vit.depth; ++i) {
    const std::string block = "blocks." + std::to_string(i);
    const auto moe = vit.moe_blocks.find(i);
    parts.push_back({block + ".norm1", norm_cost(width)});
    parts.push_back({block + ".attn", attention_cost(tokens, width, vit.qkv_bias)});
    parts.push_back({block + ".norm2", norm_cost(width)});
    if (moe == vit.moe_blocks.end())
      parts.push_back({block + ".mlp", on_units(mlp, tokens)});
    else
      parts.insert(parts.end(), moe->second.begin(), moe->second.end());
  }
  parts.push_back({vit.class_token ? "norm" : "fc_norm", norm_cost(width)});
  parts.push_back({"head", linear_cost(width, vit.classes, true)});
  return parts;
}

}  // namespace sparsight
