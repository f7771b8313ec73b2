// The exponent of a power law that measured points follow.
#pragma once

#include <utility>
#include <vector>

namespace sparsight {

// The slope of the least-squares line through (ln x, ln y). Raises Error unless there are two different x, and all
// numbers are above 0.
double log_log_slope(const std::vector<std::pair<double, double>>& points);

}  // namespace sparsight
