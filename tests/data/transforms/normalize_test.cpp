#include "sparsight/data/transforms/normalize.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

namespace sparsight::normalize_step_test {
namespace {

NormalizeOptions half_and_quarter() {
  NormalizeOptions options;
  options.mean = {0.5};
  options.std = {0.25};
  return options;
}

TEST(NormalizeStep, ByHandThereAndBack) {
  // (51 / 255 - 0.5) / 0.25 = -1.2
  ViewRandom random(RandomStream(0, "test"));
  const at::Tensor image = make_normalize(half_and_quarter())(at::full({3, 1, 1}, 51, at::kByte), random);
  EXPECT_NEAR(image[2][0][0].item<float>(), -1.2f, 1e-6);
  EXPECT_NEAR(make_denormalize(pixel_statistics(half_and_quarter()))(image, random)[2][0][0].item<float>(), 0.2f, 1e-7);
}

TEST(PixelStatistics, OneValueEqualsAsManyOfTheSame) {
  const PixelStatistics one{{0.5}, {0.25}}, three{{0.5, 0.5, 0.5}, {0.25, 0.25, 0.25}};
  EXPECT_TRUE(one == three);
  EXPECT_TRUE(three == one);
  EXPECT_FALSE(one == (PixelStatistics{{0.5, 0.5, 0.4}, {0.25, 0.25, 0.25}}));
  EXPECT_FALSE(one == (PixelStatistics{{0.5}, {0.5}}));
  EXPECT_FALSE(one == PixelStatistics());
  EXPECT_TRUE(PixelStatistics() == PixelStatistics());
  EXPECT_EQ(to_text(three), "mean [0.5, 0.5, 0.5] and std [0.25, 0.25, 0.25]");
}

}  // namespace
}  // namespace sparsight::normalize_step_test
