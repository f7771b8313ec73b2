#include "sparsight/data/transforms/pixel_ops.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "sparsight/data/transforms/warp.h"

namespace sparsight::pixel_ops_test {
namespace {

at::Tensor colour(int red, int green, int blue) {
  return at::tensor({red, green, blue}, at::TensorOptions(at::kByte)).view({3, 1, 1});
}

std::vector<int> values(const at::Tensor& image) {
  const at::Tensor flat = image.contiguous();
  const uint8_t* data = flat.const_data_ptr<uint8_t>();
  return {data, data + flat.numel()};
}

using Levels = std::vector<int>;

// A circle is 255 steps, of which a sixth is 42.5; hue, saturation and value are bytes between.
TEST(PixelOps, HueTurnsByHand) {
  // Hue 0 + 85 = 85, which is 85 * 6 / 255 = 2 sixths: pure green.
  EXPECT_EQ(values(adjust_hue(colour(255, 0, 0), 1.0 / 3)), (Levels{0, 255, 0}));
  // 0 - 85 is 171 modulo 256: 4.0235 sixths, blue with red at 255 * 0.0235 = 6.
  EXPECT_EQ(values(adjust_hue(colour(255, 0, 0), -1.0 / 3)), (Levels{6, 0, 255}));
  // 0.5 * 255 is cut to 127: 2.9882 sixths, green with blue at 255 * 0.9882 = 252.
  EXPECT_EQ(values(adjust_hue(colour(255, 0, 0), 0.5)), (Levels{0, 255, 252}));
  // Hue 0.5 / 6 * 255 = 21.25, saturation 0.5 * 255 = 127.5, value 200: (21, 127, 200). 42 steps on, hue 63 is 1.4824
  // sixths: green 200, blue 200 (1 - 127 / 255) = 100.4, red 200 (1 - 127 / 255 * 0.4824) = 151.95.
  EXPECT_EQ(values(adjust_hue(colour(200, 150, 100), 1.0 / 6)), (Levels{152, 200, 100}));
  // Not turned, but rounded: (99.69, 239.7, 200) is cut to (99, 239, 200), hue 99 is 2.3294 sixths: red
  // 200 (1 - 239 / 255) = 12.5, blue 200 (1 - 239 / 255 * (1 - 0.3294)) = 74.3.
  EXPECT_EQ(values(adjust_hue(colour(12, 200, 77), 0)), (Levels{13, 200, 74}));
  EXPECT_EQ(values(adjust_hue(colour(90, 90, 90), 0.3)), (Levels{90, 90, 90}));  // grey has no hue
}

TEST(PixelOps, BrightnessStopsAtWhite) {  // 200 * 1.5 = 300, 100 * 1.5 = 150
  EXPECT_EQ(values(adjust_brightness(colour(200, 100, 0), 1.5)), (Levels{255, 150, 0}));
}

TEST(PixelOps, LeaveTheirArgumentAlone) {
  const at::Tensor image = colour(10, 20, 30), before = image.clone();
  adjust_brightness(image, 2), adjust_contrast(image, 2), adjust_saturation(image, 2), adjust_hue(image, 0.2);
  adjust_sharpness(image, 2), posterize(image, 2), solarize(image, 5), autocontrast(image), equalize(image);
  grayscale(image), warp(image, {1, 0, 1, 0, 1, 0}, {0});
  EXPECT_TRUE(at::equal(image, before));
}

TEST(PixelOps, AcceptOneChannelAndRefuseOthers) {
  const at::Tensor grey = at::full({1, 4, 5}, 100, at::kByte);
  EXPECT_TRUE(at::equal(adjust_saturation(grey, 2), grey));
  EXPECT_TRUE(at::equal(adjust_hue(grey, 0.2), grey));
  EXPECT_EQ(values(adjust_brightness(grey, 0.5))[7], 50);
  EXPECT_THROW(adjust_brightness(at::full({4, 4, 5}, 100, at::kByte), 1), UsageError);
  EXPECT_THROW(adjust_brightness(grey.to(at::kFloat), 1), UsageError);
}

at::Tensor counting() { return at::tensor({1, 2, 3, 4, 5, 6, 7, 8, 9}, at::TensorOptions(at::kByte)).view({1, 3, 3}); }

TEST(Warp, ShiftsByWholePixels) {  // the source lies one to the right, so the picture moves left
  EXPECT_EQ(values(warp(counting(), {1, 0, 1, 0, 1, 0}, {0})), (Levels{2, 3, 0, 5, 6, 0, 8, 9, 0}));
  EXPECT_EQ(values(warp(counting(), {1, 0, 0, 0, 1, -1}, {7})), (Levels{7, 7, 7, 1, 2, 3, 4, 5, 6}));
}

TEST(Warp, RotatesAroundTheCentre) {  // (x, y) takes its pixel from (-y, x): a quarter turn
  EXPECT_EQ(values(warp(counting(), {0, -1, 0, 1, 0, 0}, {0})), (Levels{3, 6, 9, 2, 5, 8, 1, 4, 7}));
}

TEST(Warp, ShearsRowsAroundTheCentre) {  // rows at y = -1, 0, 1 take pixels from x + y
  EXPECT_EQ(values(warp(counting(), {1, 1, 0, 0, 1, 0}, {0})), (Levels{0, 1, 2, 4, 5, 6, 8, 9, 0}));
}

}  // namespace
}  // namespace sparsight::pixel_ops_test
