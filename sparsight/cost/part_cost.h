// A model's cost part by part: the return value of a whole model's cost().
#pragma once

#include <string>
#include <vector>

#include "sparsight/cost/layer_cost.h"

namespace sparsight {

// One part of a model and its cost per image.
struct PartCost {
  std::string part;  // the name of its parameters, "blocks.3.mlp"
  Cost cost;
  std::string output = {};  // shape of its output for one image, "160x64x64"; "" if unknown
};

// "160x64x64"
std::string map_text(int64_t channels, MapSize map);

void append(std::vector<PartCost>& parts, const std::vector<PartCost>& more);
Cost total(const std::vector<PartCost>& parts);

}  // namespace sparsight
