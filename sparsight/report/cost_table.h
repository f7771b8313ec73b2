// What a model costs, part by part, as text.
#pragma once

#include <string>
#include <vector>

#include "sparsight/cost/convention.h"
#include "sparsight/cost/part_cost.h"

namespace sparsight {

// One line for each part: the shape that it makes of an image, parameters, those that one token uses (active), bytes of
// the weights that an image reads, multiply-adds and elementwise operations per image; then a line with their sums, and
// one with the FLOPs by the convention. Parts whose cost is assumed are marked, and a last line says what that means.
std::string cost_table(const std::vector<PartCost>& parts, const CostConvention& convention);

}  // namespace sparsight
