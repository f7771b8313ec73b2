#include "sparsight/data/transforms/color.h"

#include <set>

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

namespace sparsight::color_test {
namespace {

int level(const TransformOp& op, const at::Tensor& image, uint64_t seed) {
  ViewRandom random(RandomStream(seed, "test"));
  return op(image, random)[0][0][0].item<int>();
}

TEST(ColorJitter, SamplesBrightnessFromItsRange) {
  ColorJitterOptions options;
  options.brightness = 0.4;  // factors 0.6 .. 1.4 of level 100
  const TransformOp op = make_color_jitter(options);
  const at::Tensor image = at::full({3, 2, 2}, 100, at::kByte);
  std::set<int> seen;
  double sum = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const int got = level(op, image, seed);
    EXPECT_GE(got, 60);
    EXPECT_LE(got, 140);
    seen.insert(got);
    sum += got;
  }
  EXPECT_GT(seen.size(), 70u);              // of 80 levels
  EXPECT_NEAR(sum / 1000, 99.5, 4 * 0.73);  // uniform, fractions dropped; standard error 80 / sqrt(12 * 1000)
}

TEST(ColorJitter, WithoutStrengthChangesNothing) {
  const at::Tensor image = at::tensor({9, 99, 199}, at::TensorOptions(at::kByte)).view({3, 1, 1});
  ViewRandom random(RandomStream(0, "test"));
  EXPECT_TRUE(at::equal(make_color_jitter({})(image, random), image));
}

TEST(ColorJitter, UsesEachOfItsFourChanges) {
  const at::Tensor image =
      at::tensor({200, 20, 100, 50, 90, 10, 60, 255, 30, 40, 70, 80}, at::TensorOptions(at::kByte)).view({3, 2, 2});
  for (double ColorJitterOptions::*change : {&ColorJitterOptions::brightness, &ColorJitterOptions::contrast,
                                             &ColorJitterOptions::saturation, &ColorJitterOptions::hue}) {
    ColorJitterOptions options;
    options.*change = 0.5;
    ViewRandom random(RandomStream(3, "test"));
    EXPECT_FALSE(at::equal(make_color_jitter(options)(image, random), image));
  }
}

TEST(Grayscale, HappensWithItsProbability) {
  GrayscaleOptions options;
  options.probability = 0.25;
  const TransformOp op = make_grayscale(options);
  const at::Tensor red = at::tensor({255, 0, 0}, at::TensorOptions(at::kByte)).view({3, 1, 1});
  int grey = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) grey += level(op, red, seed) == 76;  // 0.299 * 255
  EXPECT_NEAR(grey, 500, 80);  // 4 standard errors: 4 sqrt(2000 * 0.25 * 0.75) = 77
}

}  // namespace
}  // namespace sparsight::color_test
