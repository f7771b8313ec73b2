// What a vision transformer costs, part by part, by arithmetic alone: sparsight/models/vit.h with or without MoE
// layers. Counted as in analysis/layer_cost.h. Letters: moe/axes.md.
#pragma once

#include <map>
#include <vector>

#include "sparsight/analysis/part_cost.h"

namespace sparsight {

struct VitShape {
  int64_t channels = 3, height = 224, width = 224, classes = 1000;  // C, H, W, K
  int64_t tokens_width = 768;                                       // D
  int64_t depth = 12;
  int64_t mlp_hidden = 3072;  // F of the dense MLPs
  int64_t patch = 16;
  bool class_token = true;
  bool qkv_bias = true;
  std::map<int64_t, std::vector<PartCost>> moe_blocks = {};  // by block: what stands in place of its MLP

  int64_t patches() const { return height / patch * (width / patch); }
  int64_t tokens() const { return patches() + (class_token ? 1 : 0); }  // S
};

std::vector<PartCost> vit_cost(const VitShape& vit);

}  // namespace sparsight
