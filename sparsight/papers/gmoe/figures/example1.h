// What a model of example 1 has learned, from its accuracy on each shape and colour.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sparsight/core/options.h"

namespace sparsight::gmoe {

// Shares of the training ellipses that are red and of the squares that are blue.
struct Example1Shares {
  double ellipse_red = 0.9, square_blue = 0.5;
};

// cells: of an evaluation, {"class": "ellipse" | "square", "domain": "red" | "blue", "images", "accuracy"}, one for
// each combination; Error if one is missing. Returns in percent "accuracy" on the uniform distribution,
// "in_distribution" with the training shares, "conflicting" of blue ellipses and red squares, "together" of red
// ellipses and blue squares, "reliance", "together" minus "conflicting", and "worst", the lowest of a combination.
// "accuracy_images" and those of the next three: how many images of equal weight would scatter as much.
Json example1_measures(const Json& cells, const Example1Shares& shares);

std::string shown_widths(const std::vector<int64_t>& widths);  // "16, 32 and 64"

}  // namespace sparsight::gmoe
