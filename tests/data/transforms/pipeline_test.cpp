#include "sparsight/data/transforms/pipeline.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"

namespace sparsight::pipeline_test {
namespace {

at::Tensor apply(const std::string& steps, const at::Tensor& image, uint64_t seed = 0) {
  RandomStream random(seed, "test");
  return TransformPipeline(Json::parse(steps), "transforms.train")(image, random);
}

at::Tensor numbered(int64_t height, int64_t width) {
  return at::arange(height * width, at::TensorOptions(at::kByte)).view({1, height, width});
}

TEST(TransformPipeline, WithoutStepsScalesBytesToOne) {
  const at::Tensor image = apply("[]", at::full({1, 2, 2}, 51, at::kByte));
  EXPECT_EQ(image.scalar_type(), at::kFloat);
  EXPECT_FLOAT_EQ(image[0][1][1].item<float>(), 0.2f);
}

TEST(TransformPipeline, NormalizesByHand) {
  // (51 / 255 - 0.5) / 0.25 = -1.2
  const at::Tensor image =
      apply(R"([{"op": "normalize", "mean": [0.5], "std": [0.25]}])", at::full({3, 1, 1}, 51, at::kByte));
  EXPECT_NEAR(image[2][0][0].item<float>(), -1.2f, 1e-6);
}

TEST(TransformPipeline, CropsTheMiddle) {
  const at::Tensor image = apply(R"([{"op": "center_crop", "size": 2}])", numbered(4, 4)).mul(255);
  EXPECT_TRUE(at::equal(image.round().to(at::kByte),
                        at::arange(0, 16, at::TensorOptions(at::kByte)).view({1, 4, 4}).slice(1, 1, 3).slice(2, 1, 3)));
}

TEST(TransformPipeline, RandomCropsStayInsideAndVary) {
  const at::Tensor first = apply(R"([{"op": "random_crop", "size": 3}])", numbered(9, 9), 1);
  EXPECT_EQ(first.sizes(), (std::vector<int64_t>{1, 3, 3}));
  // Neighbours of a crop of the numbered image differ by 1 in a row and by 9 in a column.
  EXPECT_NEAR(first[0][0][1].sub(first[0][0][0]).item<float>() * 255, 1, 1e-3);
  EXPECT_NEAR(first[0][1][0].sub(first[0][0][0]).item<float>() * 255, 9, 1e-3);
  EXPECT_FALSE(at::equal(first, apply(R"([{"op": "random_crop", "size": 3}])", numbered(9, 9), 2)));
}

TEST(TransformPipeline, FlipsWithItsProbability) {
  const at::Tensor flipped = apply(R"([{"op": "flip", "probability": 1.0}])", numbered(1, 3)).mul(255);
  EXPECT_FLOAT_EQ(flipped[0][0][0].item<float>(), 2);
  EXPECT_FLOAT_EQ(apply(R"([{"op": "flip", "probability": 0.0}])", numbered(1, 3))[0][0][0].item<float>(), 0);
}

TEST(TransformPipeline, ResizesTheShorterSideAndKeepsTheAspect) {
  EXPECT_EQ(apply(R"([{"op": "resize", "size": [4]}])", at::zeros({3, 8, 12}, at::kByte)).sizes(),
            (std::vector<int64_t>{3, 4, 6}));
  EXPECT_EQ(
      apply(R"([{"op": "resize", "size": [4, 5], "filter": "bicubic"}])", at::zeros({3, 8, 12}, at::kByte)).sizes(),
      (std::vector<int64_t>{3, 4, 5}));
}

TEST(TransformPipeline, HalvingAveragesPixelsByHand) {
  // Antialiased bilinear at scale 2: triangle weights 1/8 3/8 3/8 1/8 inside; a constant stays constant.
  const at::Tensor constant = apply(R"([{"op": "resize", "size": [2, 2]}])", at::full({1, 4, 4}, 100, at::kByte));
  EXPECT_NEAR(constant[0][1][1].item<float>() * 255, 100, 1e-3);
  at::Tensor edge = at::zeros({1, 1, 8}, at::kByte);
  edge.slice(2, 4).fill_(80);
  const at::Tensor half = apply(R"([{"op": "resize", "size": [1, 4]}])", edge).mul(255);
  EXPECT_NEAR(half[0][0][1].item<float>(), 10, 1);  // 80 * 1/8
  EXPECT_NEAR(half[0][0][2].item<float>(), 70, 1);  // 80 * 7/8
}

TEST(TransformPipeline, RandomResizedCropGivesTheAskedSizeFromEveryImage) {
  for (const int64_t width : {1, 5, 64})
    EXPECT_EQ(apply(R"([{"op": "random_resized_crop", "size": 16}])", at::zeros({3, 20, width}, at::kByte)).sizes(),
              (std::vector<int64_t>{3, 16, 16}));
}

TEST(TransformPipeline, RefusesWhatCannotWork) {
  EXPECT_THROW(apply(R"([{"op": "center_crop", "size": 5}])", numbered(4, 4)), UsageError);
  EXPECT_THROW(apply(R"([{"op": "sharpen"}])", numbered(4, 4)), UsageError);
  EXPECT_THROW(apply(R"([{"size": 4}])", numbered(4, 4)), UsageError);
  EXPECT_THROW(apply(R"([{"op": "resize", "size": []}])", numbered(4, 4)), UsageError);
  EXPECT_THROW(apply(R"([{"op": "normalize", "mean": [0.5, 0.5], "std": [1]}])", numbered(4, 4)), UsageError);
  EXPECT_THROW(apply(R"([{"op": "normalize", "preset": "imagenet"}])", numbered(4, 4)),
               UsageError);  // 3 means, 1 channel
}

}  // namespace
}  // namespace sparsight::pipeline_test
