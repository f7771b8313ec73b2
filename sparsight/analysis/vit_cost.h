// What a vision transformer costs, part by part, by arithmetic alone: sparsight/models/vit.h with or without MoE
// layers. Counted as in analysis/layer_cost.h. Letters: moe/axes.md.
#pragma once

#include <map>
#include <vector>

#include "sparsight/analysis/part_cost.h"

namespace sparsight {

// An MoE layer, per token or per image. `expert` is the cost of one of them for a row, `shared_expert` that of one of
// them for all.
struct MoeLayerShape {
  Cost router;
  Cost expert;
  int64_t experts = 0;  // E
  int64_t chosen = 0;   // rows that experts compute: K for a token, or on average less where capacity drops assignments
  Cost shared_expert = {};
  int64_t shared = 0;
};
Cost moe_layer_cost(const MoeLayerShape& layer);

struct VitShape {
  int64_t channels = 3, height = 224, width = 224, classes = 1000;  // C, H, W, K
  int64_t tokens_width = 768;                                       // D
  int64_t depth = 12;
  int64_t mlp_hidden = 3072;  // F of the dense MLPs
  int64_t patch = 16;
  bool class_token = true;
  bool qkv_bias = true;
  std::map<int64_t, Cost> moe_blocks = {};  // by block: cost per image of what stands in place of its MLP

  int64_t patches() const { return height / patch * (width / patch); }
  int64_t tokens() const { return patches() + (class_token ? 1 : 0); }  // S
};

std::vector<PartCost> vit_cost(const VitShape& vit);

}  // namespace sparsight
