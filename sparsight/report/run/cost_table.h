// What a model costs, part by part, as text.
#pragma once

#include <string>
#include <vector>

#include "sparsight/cost/convention.h"
#include "sparsight/cost/part_cost.h"

namespace sparsight {

// One line per part: its output shape for an image, parameters, active parameters (used by one token), bytes of the
// weights that an image reads, multiply-adds and elementwise operations per image; then a line of totals, and one with
// the FLOPs by the convention. Parts whose cost is assumed are marked and explained in a last line.
std::string cost_table(const std::vector<PartCost>& parts, const CostConvention& convention);

}  // namespace sparsight
