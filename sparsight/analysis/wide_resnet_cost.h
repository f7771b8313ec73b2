// What a wide residual network costs, dense or with routed patches (WRN-pMoE): sparsight/models/wide_resnet.h, the
// latter with router "patch_choice" and experts "norm_conv". Counted as in analysis/layer_cost.h. Letters: moe/axes.md.
#pragma once

#include <vector>

#include "sparsight/analysis/part_cost.h"

namespace sparsight {

struct WideResnetShape {
  int64_t channels = 3, height = 64, width = 64, outputs = 1;  // C, H, W; numbers of the head: 1 for two classes
  int64_t depth = 10, widen = 10;
  int64_t experts = 0;    // E; 0: no MoE layer
  int64_t taken = 0;      // patches of an image that each expert takes
  int64_t patch = 4;      // side of the patches
  int64_t kernel = 3;     // of the experts
  bool gathered = false;  // only patches that were taken are convolved; else the whole map for each expert
  int64_t shared = 0;     // experts that see every patch

  int64_t patches() const { return (height + 3) / 4 / patch * ((width + 3) / 4 / patch); }  // of the last map
};
std::vector<PartCost> wide_resnet_cost(const WideResnetShape& net);

}  // namespace sparsight
