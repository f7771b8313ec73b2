#include "sparsight/analysis/patch_tint.h"

#include <cmath>

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "sparsight/analysis/canvas.h"
#include "tests/analysis/routing_fixture.h"

namespace sparsight::patch_tint_test {
namespace {

using testing::hand_made_routing;
using testing::to_tensor;

Canvas to_canvas(const at::Tensor& image) {
  Canvas canvas(image.size(2), image.size(1), {0, 0, 0});
  canvas.paste(0, 0, image);
  return canvas;
}

TEST(PatchTint, FirstExperts) {
  EXPECT_EQ(first_experts(hand_made_routing(), 0), (std::vector<int64_t>{0, 0, 0, 1}));
  EXPECT_EQ(first_experts(hand_made_routing(), 1), (std::vector<int64_t>{2, 2, 0, -1}))
      << "capacity dropped the last one";
}

// Expert-choice: assignments in order of expert, a token with several experts or none.
TEST(PatchTint, LargestGateWins) {
  Routing routing = hand_made_routing();
  routing.per_token = 0;
  routing.token = to_tensor<int64_t>({0, 1, 0, 2, 0}, at::kLong);
  routing.expert = to_tensor<int64_t>({0, 0, 1, 1, 2}, at::kLong);
  routing.gate = to_tensor<float>({.2f, .3f, .6f, .1f, .5f}, at::kFloat);
  routing.kept = to_tensor<int64_t>({1, 1, 1, 1, 1}, at::kLong).to(at::kBool);
  EXPECT_EQ(first_experts(routing, 0), (std::vector<int64_t>{1, 0, 1, -1}));
  EXPECT_EQ(shown_experts(routing, 0), (std::vector<std::vector<int64_t>>{{1, 2, 0}, {0}, {1}, {}}));
  // Patch 0 of 12 x 12 pixels: stripes of 4 in the colours of experts 1, 2 and 0, on grey 100 (see below).
  const Canvas canvas = to_canvas(tint_patches(at::full({3, 4, 4}, 100, at::kByte), routing, 0, 24));
  const Rgb second = expert_colour(1);
  EXPECT_EQ(canvas.pixel(0, 0), (Rgb{static_cast<uint8_t>(std::lround(45 + 0.55 * second[0])),
                                     static_cast<uint8_t>(std::lround(45 + 0.55 * second[1])),
                                     static_cast<uint8_t>(std::lround(45 + 0.55 * second[2]))}));
  EXPECT_EQ(canvas.pixel(4, 0), (Rgb{45, 132, 108}));
  EXPECT_EQ(canvas.pixel(8, 0), (Rgb{45, 108, 143}));
  EXPECT_EQ(canvas.pixel(12, 0), (Rgb{45, 108, 143}));
  EXPECT_EQ(canvas.pixel(23, 23), (Rgb{33, 33, 33}));
}

// A 4 x 4 picture of grey 100, enlarged 4 times; patches of 8 x 8 (too small for a number's margin of one: 7 + 2 > 8).
TEST(PatchTint, TintsEachPatch) {
  const at::Tensor image = at::full({3, 4, 4}, 100, at::kByte);
  const Canvas canvas = to_canvas(tint_patches(image, hand_made_routing(), 1, 16));
  ASSERT_EQ(canvas.width(), 16);
  ASSERT_EQ(canvas.height(), 16);
  // 0.45 * 100 + 0.55 * colour; expert 2 is #009e73 = (0, 158, 115): 45, 131.9, 108.25
  EXPECT_EQ(canvas.pixel(0, 0), (Rgb{45, 132, 108}));
  EXPECT_EQ(canvas.pixel(15, 7), (Rgb{45, 132, 108}));
  // expert 0 is #0072b2 = (0, 114, 178): 45, 107.7, 142.9
  EXPECT_EQ(canvas.pixel(0, 8), (Rgb{45, 108, 143}));
  EXPECT_EQ(canvas.pixel(8, 8), (Rgb{33, 33, 33})) << "no expert: a third of the picture";
}

TEST(PatchTint, OneExpertForTheWholeImage) {
  Routing routing = hand_made_routing();
  routing.layout = {8, 1, 0, 0, 0};
  ASSERT_TRUE(can_tint(routing));
  const Canvas canvas = to_canvas(tint_patches(at::full({3, 2, 6}, 100, at::kByte), routing, 4, 2));
  EXPECT_EQ(canvas.width(), 6);
  EXPECT_EQ(canvas.pixel(5, 1), (Rgb{45, 132, 108}));
  routing.layout = {2, 4, 0, 0, 0};
  EXPECT_FALSE(can_tint(routing)) << "tokens that are no grid";
}

// The class token (one prefix token of five) does not shift the patches and shows in the panel's head.
TEST(PatchTint, PanelsWithClassToken) {
  Routing routing = hand_made_routing();
  routing.layout = {1, 5, 1, 2, 2};
  routing.tokens = 5;
  routing.token = to_tensor<int64_t>({0, 1, 2, 3, 4}, at::kLong);
  routing.expert = to_tensor<int64_t>({1, 2, 2, 2, 0}, at::kLong);
  routing.gate = to_tensor<float>({1, 1, 1, 1, 1}, at::kFloat);
  routing.kept = to_tensor<int64_t>({1, 1, 1, 1, 1}, at::kLong).to(at::kBool);
  const at::Tensor image = at::full({3, 8, 8}, 100, at::kByte);
  EXPECT_EQ(to_canvas(tint_patches(image, routing, 0, 8)).pixel(0, 0), (Rgb{45, 132, 108}));

  Routing elsewhere = routing;
  elsewhere.layout = {1, 5, 0, 0, 0};
  const Canvas panels = to_canvas(routing_panels(image, {routing, elsewhere}, 0, 64));
  EXPECT_EQ(panels.width(), 10 + 2 * (64 + 10)) << "input and one layer; the other is no grid";
  // The swatch of the class token ends where the panel ends: x = 10 + 64 + 10 + 64 - 1, in the colour of expert 1.
  EXPECT_EQ(panels.pixel(147, 10), expert_colour(1));
  EXPECT_EQ(panels.pixel(10, 10 + 28), (Rgb{100, 100, 100})) << "the input itself";
}

// A keypoint at (4, 4) of 8 x 8 pixels is in the middle of each panel of 64: white at a radius of 8, not inside.
TEST(PatchTint, G54_PanelsWithCirclesAtParts) {
  Routing routing = hand_made_routing();
  const Canvas panels = to_canvas(routing_panels(at::full({3, 8, 8}, 100, at::kByte), {routing}, 0, 64, {{4, 4}}));
  for (const int64_t left : {10, 10 + 64 + 10}) {
    EXPECT_EQ(panels.pixel(left + 32 + 7, 38 + 32), kPaper);
    EXPECT_EQ(panels.pixel(left + 32, 38 + 32 - 8), kPaper);
    EXPECT_NE(panels.pixel(left + 32 + 2, 38 + 32), kPaper);
    EXPECT_NE(panels.pixel(left + 32 + 20, 38 + 32), kPaper);
  }
}

}  // namespace
}  // namespace sparsight::patch_tint_test
