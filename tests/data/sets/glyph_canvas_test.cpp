#include "sparsight/data/sets/glyph_canvas.h"

#include <gtest/gtest.h>

namespace sparsight::glyph_canvas_test {

// A horizontal line through the centres of row 8 (y = 8.5) with radius 1 covers, by distance d of a pixel centre,
// clamp(1.5 - d, 0, 1): rows 8 and 7, 9 (d = 1 -> 0.5), row 6 (d = 2 -> 0).
TEST(GlyphCanvas, CoverageFallsWithDistance) {
  GlyphCanvas canvas(16);
  canvas.draw({{{4.5f, 8.5f}, {12.5f, 8.5f}}}, 1, {200, 100, 50}, 1);
  const auto at = [&](int channel, int y, int x) { return canvas.plane(channel)[y * 16 + x]; };
  EXPECT_EQ(at(0, 8, 8), 200);
  EXPECT_EQ(at(0, 7, 8), 100);
  EXPECT_EQ(at(1, 9, 8), 50);
  EXPECT_EQ(at(2, 6, 8), 0);
  EXPECT_EQ(at(0, 8, 3), 100);  // round end: d = 1
  EXPECT_EQ(at(0, 8, 2), 0);
}

TEST(GlyphCanvas, OpacityMixesWithWhatIsThere) {
  GlyphCanvas canvas(16);
  for (int i = 0; i < 256; ++i) canvas.plane(0)[i] = 100;
  canvas.draw({{{0, 8.5f}, {16, 8.5f}}}, 1, {200, 0, 0}, 0.25f);
  EXPECT_EQ(canvas.plane(0)[8 * 16 + 8], 125);  // 100 + (200 - 100) / 4
}

// A quadratic Bezier passes (p0 + 2 c + p1) / 4 at its middle: (2.5 + 2 * 2.5 + 14.5) / 4 = 5.5, the centre of pixel 5.
TEST(GlyphCanvas, CurveBendsTowardsItsControlPoint) {
  GlyphCanvas canvas(16);
  canvas.draw({{{2.5f, 14.5f}, {2.5f, 2.5f, true}, {14.5f, 2.5f}}}, 1, {255, 0, 0}, 1);
  EXPECT_GT(canvas.plane(0)[5 * 16 + 5], 200);
  EXPECT_EQ(canvas.plane(0)[8 * 16 + 8], 0);  // the straight line from end to end is empty
}

TEST(GlyphCanvas, DrawsOutsideOfThePictureSafely) {
  GlyphCanvas canvas(16);
  canvas.draw({{{-1e6f, -1e6f}, {1e6f, 1e6f}}, {{1e9f, 5}, {2e9f, 7}}}, 2, {255, 255, 255}, 1);
  EXPECT_EQ(canvas.plane(0)[8 * 16 + 8], 255);
  EXPECT_EQ(canvas.plane(0)[15], 0);
}

TEST(GlyphCanvas, WritesRoundedBytesAndLuma) {
  GlyphCanvas canvas(16);
  canvas.plane(0)[0] = 100.6f;
  canvas.plane(1)[0] = 300;
  canvas.plane(2)[0] = -4;
  std::vector<uint8_t> colour(768), grey(256);
  canvas.write(colour.data(), 3);
  canvas.write(grey.data(), 1);
  EXPECT_EQ(colour[0], 101);
  EXPECT_EQ(colour[256], 255);
  EXPECT_EQ(colour[512], 0);
  EXPECT_EQ(grey[0], 179);  // (77 * 101 + 150 * 255 + 29 * 0) / 256 = 179.8, rounded down
}

}  // namespace sparsight::glyph_canvas_test
