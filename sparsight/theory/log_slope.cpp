#include "sparsight/theory/log_slope.h"

#include <cmath>

#include "sparsight/core/error.h"

namespace sparsight {

double log_log_slope(const std::vector<std::pair<double, double>>& points) {
  double mean_x = 0, mean_y = 0;
  for (const auto& [x, y] : points) {
    if (!(x > 0 && y > 0)) fail("a power law needs numbers above 0, got (", x, ", ", y, ")");
    mean_x += std::log(x) / static_cast<double>(points.size());
    mean_y += std::log(y) / static_cast<double>(points.size());
  }
  double xx = 0, xy = 0;
  for (const auto& [x, y] : points) {
    xx += (std::log(x) - mean_x) * (std::log(x) - mean_x);
    xy += (std::log(x) - mean_x) * (std::log(y) - mean_y);
  }
  if (!(xx > 0)) fail("a slope needs points at two different places, got ", points.size(), " at one");
  return xy / xx;
}

}  // namespace sparsight
