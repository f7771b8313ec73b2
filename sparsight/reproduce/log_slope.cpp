#include "sparsight/reproduce/log_slope.h"

#include <cmath>

#include "sparsight/core/error.h"
#include "sparsight/reproduce/line_fit.h"

namespace sparsight {

double log_log_slope(const std::vector<std::pair<double, double>>& points) {
  std::vector<std::pair<double, double>> logarithms;
  bool differ = false;
  for (const auto& [x, y] : points) {
    if (!(x > 0 && y > 0)) fail("a power law needs numbers above 0, got (", x, ", ", y, ")");
    differ = differ || x != points.front().first;
    logarithms.emplace_back(std::log(x), std::log(y));
  }
  if (!differ) fail("a slope needs points at two different x, got ", points.size(), " at one");
  return fit_line(logarithms).slope;
}

}  // namespace sparsight
