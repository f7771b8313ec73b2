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

TEST(PixelOps, HueTurnsByHand) {
  EXPECT_EQ(values(adjust_hue(colour(255, 0, 0), 1.0 / 3)), (Levels{0, 255, 0}));
  EXPECT_EQ(values(adjust_hue(colour(255, 0, 0), -1.0 / 3)), (Levels{0, 0, 255}));
  EXPECT_EQ(values(adjust_hue(colour(255, 0, 0), 0.5)), (Levels{0, 255, 255}));
  // Hue of (200, 150, 100) is 30 degrees, chroma 100; 60 degrees on, at 90, red has fallen to 150 and green is highest.
  EXPECT_EQ(values(adjust_hue(colour(200, 150, 100), 1.0 / 6)), (Levels{150, 200, 100}));
  for (const double whole : {0.0, 1.0, -1.0})
    EXPECT_EQ(values(adjust_hue(colour(12, 200, 77), whole)), (Levels{12, 200, 77})) << whole;
  EXPECT_EQ(values(adjust_hue(colour(90, 90, 90), 0.3)), (Levels{90, 90, 90}));  // grey has no hue
}

TEST(PixelOps, BrightnessStopsAtWhite) {  // 200 * 1.5 = 300, 100 * 1.5 = 150
  EXPECT_EQ(values(adjust_brightness(colour(200, 100, 0), 1.5)), (Levels{255, 150, 0}));
}

TEST(PixelOps, LeaveTheirArgumentAlone) {
  const at::Tensor image = colour(10, 20, 30), before = image.clone();
  adjust_brightness(image, 2), adjust_contrast(image, 2), adjust_saturation(image, 2), adjust_hue(image, 0.2);
  adjust_sharpness(image, 2), posterize(image, 2), solarize(image, 5), autocontrast(image), equalize(image);
  grayscale(image), warp(image, {1, 0, 1, 0, 1, 0}, 0);
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
  EXPECT_EQ(values(warp(counting(), {1, 0, 1, 0, 1, 0}, 0)), (Levels{2, 3, 0, 5, 6, 0, 8, 9, 0}));
  EXPECT_EQ(values(warp(counting(), {1, 0, 0, 0, 1, -1}, 7)), (Levels{7, 7, 7, 1, 2, 3, 4, 5, 6}));
}

TEST(Warp, RotatesAroundTheCentre) {  // (x, y) takes its pixel from (-y, x): a quarter turn
  EXPECT_EQ(values(warp(counting(), {0, -1, 0, 1, 0, 0}, 0)), (Levels{3, 6, 9, 2, 5, 8, 1, 4, 7}));
}

TEST(Warp, ShearsRowsAroundTheCentre) {  // rows at y = -1, 0, 1 take pixels from x + y
  EXPECT_EQ(values(warp(counting(), {1, 1, 0, 0, 1, 0}, 0)), (Levels{0, 1, 2, 4, 5, 6, 8, 9, 0}));
}

}  // namespace
}  // namespace sparsight::pixel_ops_test
