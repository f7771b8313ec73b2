#include "sparsight/papers/gmoe/figures/example1.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"

namespace sparsight::gmoe {

Json example1_measures(const Json& cells, const Example1Shares& shares) {
  const auto accuracy = [&](const char* shape, const char* colour) {
    for (const Json& cell : cells)
      if (cell.at("class") == shape && cell.at("domain") == colour) return 100 * cell.at("accuracy").get<double>();
    fail("the evaluation has no ", colour, " ", shape, "; it needs test images of all four combinations");
  };
  const double red_ellipse = accuracy("ellipse", "red"), blue_ellipse = accuracy("ellipse", "blue"),
               red_square = accuracy("square", "red"), blue_square = accuracy("square", "blue");
  const double conflicting = (blue_ellipse + red_square) / 2, together = (red_ellipse + blue_square) / 2;
  return {
      {"accuracy", (conflicting + together) / 2},
      {"in_distribution", (shares.ellipse_red * red_ellipse + (1 - shares.ellipse_red) * blue_ellipse +
                           (1 - shares.square_blue) * red_square + shares.square_blue * blue_square) /
                              2},
      {"conflicting", conflicting},
      {"reliance", together - conflicting},
      {"worst", std::min({red_ellipse, blue_ellipse, red_square, blue_square})},
  };
}

std::string shown_widths(const std::vector<int64_t>& widths) {
  std::string text;
  for (size_t i = 0; i < widths.size(); ++i)
    text += cat(i == 0 ? "" : i + 1 < widths.size() ? ", " : " and ", widths[i]);
  return text;
}

}  // namespace sparsight::gmoe
