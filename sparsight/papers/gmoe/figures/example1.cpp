#include "sparsight/papers/gmoe/figures/example1.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"

namespace sparsight::gmoe {

namespace {

// The cells are red and blue ellipses, red and blue squares.
struct CellAccuracies {
  std::array<double, 4> percent, images;

  // The mean with weights whose sum is 1.
  void put_mean(Json& measures, const std::string& name, const std::array<double, 4>& weights) const {
    double mean = 0, variance = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      mean += weights[i] * percent[i];
      variance += weights[i] * weights[i] / images[i];
    }
    measures[name] = mean;
    measures[name + "_images"] = 1 / variance;
  }
};

CellAccuracies cell_accuracies(const Json& cells) {
  CellAccuracies found{};
  size_t i = 0;
  for (const char* shape : {"ellipse", "square"})
    for (const char* colour : {"red", "blue"}) {
      const auto cell = std::ranges::find_if(
          cells, [&](const Json& each) { return each.at("class") == shape && each.at("domain") == colour; });
      if (cell == cells.end())
        fail("the evaluation has no ", colour, " ", shape, "; it needs test images of all four combinations");
      found.percent[i] = 100 * cell->at("accuracy").get<double>();
      found.images[i++] = cell->at("images").get<double>();
    }
  return found;
}

}  // namespace

Json example1_measures(const Json& cells, const Example1Shares& shares) {
  const CellAccuracies found = cell_accuracies(cells);
  Json measures = Json::object();
  found.put_mean(measures, "accuracy", {0.25, 0.25, 0.25, 0.25});
  found.put_mean(
      measures, "in_distribution",
      {shares.ellipse_red / 2, (1 - shares.ellipse_red) / 2, (1 - shares.square_blue) / 2, shares.square_blue / 2});
  found.put_mean(measures, "together", {0.5, 0, 0, 0.5});
  found.put_mean(measures, "conflicting", {0, 0.5, 0.5, 0});
  measures["reliance"] = measures.at("together").get<double>() - measures.at("conflicting").get<double>();
  measures["worst"] = std::ranges::min(found.percent);
  return measures;
}

std::string shown_widths(const std::vector<int64_t>& widths) {
  std::string text;
  for (size_t i = 0; i < widths.size(); ++i)
    text += cat(i == 0 ? "" : i + 1 < widths.size() ? ", " : " and ", widths[i]);
  return text;
}

}  // namespace sparsight::gmoe
