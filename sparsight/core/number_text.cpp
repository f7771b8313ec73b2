#include "sparsight/core/number_text.h"

#include <cstdio>

namespace sparsight {

std::string fixed(double value, int decimals) {
  char text[400];  // the longest double has 309 digits before the point
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

std::string percent(std::optional<double> fraction, int decimals) {
  return fraction ? fixed(100 * *fraction, decimals) + " %" : "-";
}

}  // namespace sparsight
