// A model's cost part by part: what the counters of whole models return.
#pragma once

#include <string>
#include <vector>

#include "sparsight/analysis/layer_cost.h"

namespace sparsight {

// One part of a model and its cost per image.
struct PartCost {
  std::string part;  // the name of its parameters, "blocks.3.mlp"
  Cost cost;
  std::string output = {};  // shape of what it makes of an image, "160x64x64"; "" where nobody says
};

Cost total(const std::vector<PartCost>& parts);

}  // namespace sparsight
