// Least-squares line fits for guide curves.
#pragma once

#include <utility>
#include <vector>

namespace sparsight {

struct LineFit {
  double offset = 0, slope = 0;
  double explained = 0;  // R²: 1 where every point lies on the line
};

// y = offset + slope x. Needs at least two different x; all zeros otherwise.
LineFit fit_line(const std::vector<std::pair<double, double>>& points);

}  // namespace sparsight
