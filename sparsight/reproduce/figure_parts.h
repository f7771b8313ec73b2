// Building blocks of figures: sizes by scale, numbers as text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sparsight/reproduce/figure.h"

namespace sparsight {

template <class T>
T by_scale(Scale scale, T smoke, T small, T paper) {
  return scale == Scale::smoke ? smoke : scale == Scale::small ? small : paper;
}

// A number of the paper, with its deviation if it gives one.
struct PaperValue {
  double mean = 0;
  std::optional<double> deviation = {};
};
using PaperCurve = std::vector<PaperValue>;

// A row of Figure::paper: `axes`, and a measure with its deviation.
Json paper_row(Json axes, const std::string& measure, const PaperValue& value);

// Whether `settings` has every entry of `where`.
bool contains(const Json& settings, const Json& where);

std::string shown_number(double value, int digits = 4);  // significant digits

}  // namespace sparsight
