#include "sparsight/reproduce/line_fit.h"

namespace sparsight {

LineFit fit_line(const std::vector<std::pair<double, double>>& points) {
  double x_mean = 0, y_mean = 0, xx = 0, xy = 0, yy = 0;
  for (const auto& [x, y] : points) {
    x_mean += x / static_cast<double>(points.size());
    y_mean += y / static_cast<double>(points.size());
  }
  for (const auto& [x, y] : points) {
    xx += (x - x_mean) * (x - x_mean);
    xy += (x - x_mean) * (y - y_mean);
    yy += (y - y_mean) * (y - y_mean);
  }
  if (xx == 0) return {};
  const double slope = xy / xx;
  return {y_mean - slope * x_mean, slope, yy == 0 ? 1 : slope * xy / yy};
}

}  // namespace sparsight
