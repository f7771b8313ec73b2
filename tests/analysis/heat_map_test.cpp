#include "sparsight/analysis/heat_map.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sparsight/analysis/canvas.h"

namespace sparsight::heat_map_test {
namespace {

Canvas to_canvas(const at::Tensor& image) {
  Canvas canvas(image.size(2), image.size(1), {0, 0, 0});
  canvas.paste(0, 0, image);
  return canvas;
}

// How many pixels have the colour.
int64_t area(const Canvas& canvas, Rgb colour) {
  int64_t pixels = 0;
  for (int64_t y = 0; y < canvas.height(); ++y)
    for (int64_t x = 0; x < canvas.width(); ++x) pixels += canvas.pixel(x, y) == colour;
  return pixels;
}

// Shares of rows: (1, 0), (0, 1), (1/2, 1/2), and a class without counts. Cells are 21 x 21 with a gap of one.
TEST(HeatMap, ColoursAreSharesOfRowsWithCounts) {
  const Canvas canvas =
      to_canvas(heat_map_picture("blocks.1.mlp", Json::parse("[[8, 0], [0, 3], [0, 0], [5, 5]]"), {}));
  constexpr int64_t kCell = 21 * 21;
  EXPECT_EQ(area(canvas, {253, 231, 37}), 2 * kCell) << "viridis at 1";
  EXPECT_EQ(area(canvas, {33, 145, 140}), 2 * kCell) << "viridis at 1/2";
  EXPECT_EQ(area(canvas, {68, 1, 84}), 2 * kCell) << "viridis at 0";
}

TEST(HeatMap, LongNamesAndManyRows) {
  const Json counts(std::vector<std::vector<int>>(120, {1, 2, 3}));
  const std::vector<std::string> names(120, std::string(300, 'x'));
  const at::Tensor picture = heat_map_picture("layer", counts, names);
  EXPECT_GT(picture.size(1), 120 * 22);
  EXPECT_LT(picture.size(2), 600);
}

// 4,096 experts are a pixel wide each: expert 4000 has all of the row, in 21 pixels.
TEST(HeatMap, ThousandsOfExpertsAreNarrow) {
  std::vector<int> row(4096, 0);
  row[4000] = 7;
  const at::Tensor picture = heat_map_picture("layer", Json{row}, {"cat"});
  EXPECT_GT(picture.size(2), 4096);
  EXPECT_LT(picture.size(2), 4096 + 100);
  EXPECT_EQ(area(to_canvas(picture), {253, 231, 37}), 21);
  EXPECT_LT(heat_map_picture("layer", Json{std::vector<int>(300, 1)}, {"cat"}).size(2), 4096 + 100);
}

}  // namespace
}  // namespace sparsight::heat_map_test
