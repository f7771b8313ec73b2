// A line chart over training steps, or over another number: named series of points, with values shown on hover.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sparsight/core/options.h"

namespace sparsight {

struct Series {
  std::string name;
  bool measured = false;                          // few points, each with a marker (evaluations), not a dense line
  std::vector<std::pair<double, double>> points;  // step, value
  std::vector<std::pair<double, double>> intervals = {};  // low and high of each point; empty: none

  void add(double step, std::optional<double> value) {
    if (value) points.emplace_back(step, *value);
  }
};

struct Axis {
  std::string title;
  std::string format;  // d3-format, such as ".1%"
  bool from_zero = false;
  bool logarithmic = false;  // only where all values are above zero
  std::string x_title = "step", x_format = ",";
  double x_linear_up_to = 0;  // above it the x axis is logarithmic (symlog), so that it may begin at 0; 0: all linear
};

// Long series are averaged down to about `kMaxPoints` points each. Series without points are left out; the
// specification is null if none remains.
Json line_chart(const std::vector<Series>& series, const Axis& axis);

inline constexpr size_t kMaxPoints = 600;

}  // namespace sparsight
