#include "sparsight/analysis/canvas.h"

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <set>

namespace sparsight::canvas_test {
namespace {

constexpr Rgb kWhite = {255, 255, 255}, kBlack = {0, 0, 0};

std::string row_text(const Canvas& canvas, int64_t y) {
  std::string row;
  for (int64_t x = 0; x < canvas.width(); ++x) row += canvas.pixel(x, y) == kBlack ? '#' : '.';
  return row;
}

// The letter T of the 5 x 7 font: a bar on top and a stem in the middle.
TEST(Canvas, WritesText) {
  Canvas canvas(6, 8, kWhite);
  canvas.text(0, 0, "T", kBlack);
  EXPECT_EQ(row_text(canvas, 0), "#####.");
  for (int64_t y = 1; y < 7; ++y) EXPECT_EQ(row_text(canvas, y), "..#...");
  EXPECT_EQ(row_text(canvas, 7), "......");
}

// Centres of pixels that are 1 to 2 away from (2.5, 2.5): all within a column or row of 2, but for the corners.
TEST(Canvas, G54_DrawsCircles) {
  Canvas canvas(5, 5, kWhite);
  canvas.ring(2.5, 2.5, 2, kBlack);
  EXPECT_EQ(row_text(canvas, 0), "..#..");
  EXPECT_EQ(row_text(canvas, 1), ".#.#.");
  EXPECT_EQ(row_text(canvas, 2), "#...#");
  canvas.ring(-50, 1e4, 3, kBlack);  // nothing of it is on the canvas
}

TEST(Canvas, CutsOffWhatIsOutside) {
  Canvas canvas(3, 2, kWhite);
  canvas.fill(-1, 1, 3, 9, kBlack);
  canvas.text(-100, 50, "far away", kBlack);
  canvas.text(2, -6, "\xC3\xA4", kBlack, 3);
  EXPECT_EQ(row_text(canvas, 1).substr(0, 2), "##");
  EXPECT_EQ(row_text(canvas, 0).substr(0, 2), "..");
}

TEST(Canvas, TensorAndBack) {
  Canvas canvas(3, 2, kWhite);
  canvas.set(2, 0, {1, 2, 3});
  const at::Tensor image = canvas.tensor();
  ASSERT_EQ(image.sizes(), (std::vector<int64_t>{3, 2, 3}));
  EXPECT_EQ(image.const_data_ptr<uint8_t>()[1 * 6 + 2], 2);  // green of the last pixel of the first row
  Canvas copy(3, 2, kBlack);
  copy.paste(0, 0, image);
  EXPECT_TRUE(at::equal(copy.tensor(), image));
}

TEST(ExpertColours, Differ) {
  std::set<std::string> seen;
  for (int64_t e = 0; e < 64; ++e) seen.insert(hex(expert_colour(e)));
  EXPECT_EQ(seen.size(), 64u);
  EXPECT_EQ(hex(expert_colour(0)), "#0072b2");  // Okabe and Ito's blue
}

}  // namespace
}  // namespace sparsight::canvas_test
