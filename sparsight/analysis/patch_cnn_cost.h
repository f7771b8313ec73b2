// What the two-layer CNN on patches costs, routed (pMoE) or not: sparsight/models/patch_cnn.h with experts "conv" whose
// kernel is the patch. Counted as in analysis/layer_cost.h; fixed output weights are neither parameters nor counted as
// multiply-adds. Letters: moe/axes.md.
#pragma once

#include <vector>

#include "sparsight/analysis/part_cost.h"

namespace sparsight {

struct PatchCnnShape {
  int64_t channels = 1, height = 112, width = 112, outputs = 1;  // C, H, W; numbers that a filter's output map gives
  int64_t patch = 28;
  int64_t experts = 0;   // E; 0: the plain CNN, whose filters see all patches
  int64_t filters = 40;  // F of each expert, or of the plain CNN
  int64_t taken = 0;     // patches of an image that each expert takes
  bool train_output = false;

  int64_t patches() const { return height / patch * (width / patch); }
};
std::vector<PartCost> patch_cnn_cost(const PatchCnnShape& cnn);

}  // namespace sparsight
