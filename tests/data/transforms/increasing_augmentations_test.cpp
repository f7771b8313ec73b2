// RandAugment as DeiT has it: its operations against timm's on Pillow's images (tests/golden/transforms/
// make_rand_augment.py), its sampling against the statistics of section 5.1 of the specification of Mobile V-MoE.
#include <cmath>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "sparsight/data/transforms/augmentations.h"
#include "sparsight/data/transforms/pixel_ops.h"
#include "sparsight/data/transforms/rand_augment.h"
#include "tests/data/transforms/golden_image.h"
#include "tests/support/errors.h"

namespace sparsight::increasing_augmentations_test {
namespace {

const BorderFill kFill{124, 116, 104};

at::Tensor small_picture(const std::string& name) {
  return golden_image(name).narrow(1, 0, 20).narrow(2, 0, 24).contiguous();
}

void expect_golden(const at::Tensor& input, const BorderFill& fill, const std::string& golden) {
  const at::Tensor expected = golden_image(golden);
  int64_t row = 0;
  for (const Augmentation& op : increasing_augmentations())
    for (const double magnitude : {0.0, 3.7, 9.0, 10.0})
      for (const double sign : {1.0, -1.0}) {
        const at::Tensor result = op.apply(input, sign * magnitude / 10, fill);
        EXPECT_EQ(largest_difference(result, expected.narrow(1, row, 20)), 0) << op.name << " " << sign * magnitude;
        row += 20;
      }
  EXPECT_EQ(row, expected.size(1));
}

TEST(IncreasingAugmentations, M34_AreThoseOfTimmOnPillowsImages) {
  expect_golden(small_picture("input.ppm"), kFill, "increasing.ppm");
  expect_golden(small_picture("grey.pgm"), {115}, "increasing_grey.pgm");
}

const Augmentation& operation(const std::string& name) {
  return entry_named(name, increasing_augmentations(), "operation");
}

// The numbers of the specification at m = 9 and 10, by hand.
TEST(IncreasingAugmentations, M34_MagnitudesByHand) {
  const at::Tensor input = small_picture("input.ppm");
  const auto expect = [&](const std::string& name, double magnitude, const at::Tensor& wanted) {
    EXPECT_TRUE(at::equal(operation(name).apply(input, magnitude / 10, kFill), wanted)) << name << " " << magnitude;
  };
  expect("posterize", 9, posterize(input, 1));  // 4 - floor(3.6)
  expect("posterize", 10, at::zeros_like(input));
  expect("solarize", 9, solarize(input, 26));               // 256 - floor(230.4)
  expect("solarize_add", 9, solarize_add(input, 99, 128));  // floor(99)
  expect("brightness", 9, adjust_brightness(input, 1.81));  // 1 + 0.81
  expect("brightness", -9, adjust_brightness(input, 0.19));
  expect("color", -10, adjust_saturation(input, 0.1));  // at least 0.1
  expect("contrast", -10, adjust_contrast(input, 0.1));
  expect("sharpness", -10, adjust_sharpness(input, 0.1));
  expect("invert", 0, at::full_like(input, 255).sub(input));
  // 0.45 * 20 = 9 rows: what is moved in has the fill of its channel.
  const at::Tensor moved = operation("translate_y").apply(input, 1, kFill);
  EXPECT_TRUE(at::equal(moved.narrow(1, 0, 11), input.narrow(1, 9, 11)));
  for (int64_t c = 0; c < 3; ++c)
    EXPECT_TRUE(at::equal(moved[c].narrow(0, 11, 9), at::full({9, 24}, kFill[static_cast<size_t>(c)], at::kByte)));
}

TEST(IncreasingAugmentations, M34_EachChangesMoreWithItsStrength) {
  const at::Tensor input = small_picture("input.ppm").to(at::kDouble);
  const auto change = [&](const Augmentation& op, double strength) {
    return op.apply(input.to(at::kByte), strength, kFill).to(at::kDouble).sub(input).abs().mean().item<double>();
  };
  for (const Augmentation& op : increasing_augmentations()) {
    const std::string name = op.name;
    const bool has_strength = name != "autocontrast" && name != "equalize" && name != "invert";
    for (const double sign : {1.0, -1.0})
      EXPECT_EQ(change(op, sign) > change(op, sign * 0.3), has_strength) << name << " " << sign;
  }
}

RandAugmentOptions deit() {
  RandAugmentOptions options;
  options.operations = "increasing";
  options.ops = 1;
  options.sigma = 0.5;
  options.probability = 0.5;
  options.fill_color = {124, 116, 104};
  return options;
}

// One operation on a picture that every operation but autocontrast changes: a gradient from 0 to 255.
TEST(RandAugmentOfDeit, M34_AppliesAnOperationHalfOfTheTime) {
  at::Tensor input = at::arange(256, at::kByte).view({1, 16, 16}).repeat({3, 1, 1});
  const TransformOp op = make_rand_augment(deit());
  const int n = 6000;
  int changed = 0;
  for (uint64_t seed = 0; seed < n; ++seed) {
    ViewRandom random(RandomStream(seed, "test"));
    changed += !at::equal(op(input, random), input);
  }
  // Autocontrast, equalize and, as the picture is grey, colour leave it as it is: 12 of 15 operations, half of the
  // time.
  const double expected = 0.5 * 12 / 15;
  EXPECT_NEAR(changed / static_cast<double>(n), expected, 4 * std::sqrt(expected * (1 - expected) / n));
}

// Brightness maps 100 to 100 (1 + 0.09 m) or its mirror, from which m follows: N(9, 0.5) clipped to 10.
TEST(RandAugmentOfDeit, M34_MagnitudesAreNormalAndClipped) {
  const at::Tensor input = at::full({3, 4, 4}, 100, at::kByte);
  RandAugmentOptions options = deit();
  options.probability = 1;
  const TransformOp op = make_rand_augment(options);
  std::vector<double> magnitudes;
  for (uint64_t seed = 0; seed < 40000; ++seed) {
    ViewRandom random(RandomStream(seed, "test")), same(RandomStream(seed, "test"));
    if (same.below(15) != 9) continue;  // brightness
    const double level = op(input, random)[0][0][0].item<double>();
    magnitudes.push_back(std::abs(level - 100) / 9);  // in steps of 1/9 that truncation makes
  }
  const auto n = static_cast<double>(magnitudes.size());
  EXPECT_NEAR(n, 40000.0 / 15, 4 * std::sqrt(40000.0 / 15));
  double sum = 0, clipped = 0, below = 0;
  for (const double m : magnitudes) {
    sum += m;
    clipped += m > 9.85;  // 10 is 190 or 10; 9.9 would be 189 or 10
    below += m < 9;
    EXPECT_GT(m, 6);
    EXPECT_LE(m, 10.0001);
  }
  EXPECT_NEAR(sum / n, 9, 0.1);
  EXPECT_NEAR(below / n, 0.5, 0.13);      // of which the truncation of levels is up to 0.09
  EXPECT_NEAR(clipped / n, 0.035, 0.02);  // P(m > 9.9) = 1 - Phi(1.8) = 0.0359
}

TEST(RandAugmentOfDeit, M34_EachOperationIsAsFrequent) {
  std::vector<int> counts(15, 0);
  for (uint64_t seed = 0; seed < 15000; ++seed) {
    ViewRandom random(RandomStream(seed, "test"));
    ++counts[static_cast<size_t>(random.below(15))];
  }
  for (const int count : counts) EXPECT_NEAR(count, 1000, 4 * std::sqrt(1000 * 14.0 / 15));
  EXPECT_EQ(augmentations("increasing").size(), 15u);
}

TEST(RandAugmentOfDeit, RefusesMagnitudesAndFillsThatDoNotFit) {
  RandAugmentOptions options = deit();
  options.magnitude = 12;
  EXPECT_EQ(testing::error_text<UsageError>([&] { make_rand_augment(options); }),
            "rand_augment has magnitude 12, but the strongest of operations = \"increasing\" is 10; lower it");
  ViewRandom random(RandomStream(0, "test"));
  EXPECT_EQ(testing::error_text<UsageError>([&] { make_rand_augment(deit())(small_picture("grey.pgm"), random); }),
            "the border's fill has 3 levels, but the images have 1 channels; give one for each, or one for all");
}

}  // namespace
}  // namespace sparsight::increasing_augmentations_test
