// What a model costs, part by part, as text.
#pragma once

#include <string>
#include <vector>

#include "sparsight/analysis/part_cost.h"

namespace sparsight {

// One line for each part with the shape that it makes of an image, its parameters and its multiply-adds per image, and
// a last line with their sums.
std::string cost_table(const std::vector<PartCost>& parts);

}  // namespace sparsight
