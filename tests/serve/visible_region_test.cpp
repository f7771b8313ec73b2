// What is left of a picture after resizes and crops, worked by hand.
#include "sparsight/serve/visible_region.h"

#include <gtest/gtest.h>

namespace sparsight::serve {
namespace {

using engine::Preprocessing;
using Kind = engine::PreprocessStep::Kind;

void expect_region(const Preprocessing& preprocessing, int64_t width, int64_t height,
                   const std::array<double, 4>& wanted) {
  const std::array<double, 4> region = visible_region(preprocessing, width, height);
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(region[i], wanted[i], 1e-9) << i;
}

// 90 x 50 becomes 64.8 x 36 by the shorter side; the middle 32 x 32 of it is 32 x 50 / 36 = 44.4 pixels wide and high.
TEST(VisibleRegion, IsTheCropOfAResizedPicture) {
  const Preprocessing crop{{{Kind::resize, 36, 0}, {Kind::center_crop, 32, 32}}, true, 3, 32, 32};
  const double side = 32 * 50 / 36.0;
  expect_region(crop, 90, 50, {(90 - side) / 2, (50 - side) / 2, side, side});
}

TEST(VisibleRegion, IsAllOfAPictureThatIsSquashed) {
  const Preprocessing squash{{{Kind::resize, 32, 32}}, true, 3, 32, 32};
  expect_region(squash, 90, 50, {0, 0, 90, 50});
}

// Without steps a picture of another size is resized to 57.6 x 32 and cropped: 32 x 50 / 32 = 50 pixels stay.
TEST(VisibleRegion, IsTheMiddleWhereTheStepsDoNotFit) {
  const Preprocessing nothing{{}, true, 3, 32, 32};
  expect_region(nothing, 90, 50, {20, 0, 50, 50});
  expect_region(nothing, 32, 32, {0, 0, 32, 32});
}

}  // namespace
}  // namespace sparsight::serve
