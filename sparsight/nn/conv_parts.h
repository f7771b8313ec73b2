// The cost of the layers of a convolutional network, part by part, along a feature map.
#pragma once

#include <string>

#include "sparsight/cost/part_cost.h"
#include "sparsight/nn/batch_norm.h"
#include "sparsight/nn/conv.h"

namespace sparsight {

// A batch norm on a map and the relu after it.
PartCost norm_part(const std::string& part, const BatchNorm& norm, MapSize map);

// A convolution; `map`, the size of its input, becomes that of its output.
PartCost conv_part(const std::string& part, const Conv& conv, MapSize& map);

}  // namespace sparsight
