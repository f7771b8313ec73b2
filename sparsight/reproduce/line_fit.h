// Least squares for guide curves.
#pragma once

#include <utility>
#include <vector>

namespace sparsight {

struct LineFit {
  double offset = 0, slope = 0;
  double explained = 0;  // R²: 1 where every point lies on the line
};

// y = offset + slope x through at least two points of different x; all zeros for fewer.
LineFit fit_line(const std::vector<std::pair<double, double>>& points);

}  // namespace sparsight
