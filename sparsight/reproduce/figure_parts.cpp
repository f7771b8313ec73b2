#include "sparsight/reproduce/figure_parts.h"

#include <cstdio>

#include <nlohmann/json.hpp>

namespace sparsight {

bool contains(const Json& settings, const Json& where) {
  for (const auto& [key, value] : where.items())
    if (!settings.contains(key) || settings.at(key) != value) return false;
  return true;
}

Json paper_row(Json axes, const std::string& measure, const PaperValue& value) {
  axes[measure] = value.mean;
  if (value.deviation) axes[measure + "_deviation"] = *value.deviation;
  return axes;
}

std::string shown_number(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  return text;
}

}  // namespace sparsight
