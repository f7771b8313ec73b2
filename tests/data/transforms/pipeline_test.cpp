#include "sparsight/data/transforms/pipeline.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"

namespace sparsight::pipeline_test {
namespace {

at::Tensor transformed(const std::string& steps, const at::Tensor& image, uint64_t seed = 0) {
  ViewRandom random(RandomStream(seed, "test"));
  return TransformPipeline(Json::parse(steps), "transforms.train")(image, random);
}

at::Tensor numbered(int64_t height, int64_t width) {
  return at::arange(height * width, at::TensorOptions(at::kByte)).view({1, height, width});
}

TEST(TransformPipeline, WithoutStepsScalesBytesToOne) {
  const at::Tensor image = transformed("[]", at::full({1, 2, 2}, 51, at::kByte));
  EXPECT_EQ(image.scalar_type(), at::kFloat);
  EXPECT_FLOAT_EQ(image[0][1][1].item<float>(), 0.2f);
}

TEST(TransformPipeline, StopsBeforeNormalizeAndSaysWhatItIsBy) {
  const Json steps = Json::parse(R"([{"op": "normalize", "mean": [0.5], "std": [0.25]}])");
  const TransformPipeline pipeline(steps, "transforms.eval");
  EXPECT_EQ(pipeline.statistics().mean, (std::vector<double>{0.5}));
  EXPECT_EQ(pipeline.statistics().std, (std::vector<double>{0.25}));
  ViewRandom random(RandomStream(0, "test"));
  const at::Tensor bytes = at::arange(256, at::TensorOptions(at::kByte)).view({1, 16, 16});
  const at::Tensor pixels = pipeline(bytes, random);
  EXPECT_FLOAT_EQ(pixels[0][3][3].item<float>(), 0.2f);  // 51 / 255
  EXPECT_TRUE(at::equal(pixels.mul(255), bytes.to(at::kFloat)));
  // Without normalize, bytes are multiplied by fp32(1/255), which is inexact for 126 of them. The input of models
  // trained without normalisation is unchanged.
  EXPECT_EQ(transformed("[]", bytes).mul(255).ne(bytes).sum().item<int64_t>(), 126);
  EXPECT_TRUE(TransformPipeline(Json::array(), "transforms.eval").statistics().empty());
}

// Their units are those of normalised values: 2 is 0.5 + 2 * 0.25 = 1, and the padding's 0 is the mean.
TEST(TransformPipeline, StepsAfterNormalizeSeeNormalisedValues) {
  const std::string normalize = R"({"op": "normalize", "mean": [0.5], "std": [0.25]})";
  const at::Tensor black = at::zeros({1, 20, 20}, at::kByte);
  const at::Tensor erased =
      transformed("[" + normalize + R"(, {"op": "random_erasing", "probability": 1, "value": 2}])", black);
  EXPECT_FLOAT_EQ(erased.max().item<float>(), 1);
  EXPECT_NEAR(erased.min().item<float>(), 0, 1e-7);
  const at::Tensor padded =
      transformed("[" + normalize + R"(, {"op": "random_crop", "size": 60, "padding": 20}])", black);
  EXPECT_FLOAT_EQ(padded[0][0][0].item<float>(), 0.5);
  EXPECT_NEAR(padded[0][30][30].item<float>(), 0, 1e-7);
  const at::Tensor noisy = transformed("[" + normalize +
                                           R"(, {"op": "random_erasing", "probability": 1, "noise": true,
                                           "scale": [0.5, 0.6], "ratio": [1, 1]}])",
                                       at::zeros({1, 80, 80}, at::kByte));
  const at::Tensor noise = noisy.masked_select(noisy.abs().gt(1e-6));
  EXPECT_NEAR(noise.mean().item<float>(), 0.5, 0.02);  // N(0,1) is N(0.5, 0.25^2) in pixels: standard error 0.005
  EXPECT_NEAR(noise.std().item<float>(), 0.25, 0.02);
  EXPECT_LT(noise.min().item<float>(), 0);  // never clamped
}

// For user-defined datasets whose images are not bytes.
TEST(TransformPipeline, TakesOtherNumbersAsTheyAre) {
  const at::Tensor image = at::tensor({-1.5, 0.25, 3.0}, at::kDouble).view({1, 1, 3});
  for (const char* steps : {"[]", R"([{"op": "normalize", "mean": [0.5], "std": [0.25]}])"})
    EXPECT_TRUE(at::equal(transformed(steps, image), image.to(at::kFloat))) << steps;
}

TEST(TransformPipeline, CropsTheMiddle) {
  const at::Tensor image = transformed(R"([{"op": "center_crop", "size": 2}])", numbered(4, 4)).mul(255);
  EXPECT_TRUE(at::equal(image.round().to(at::kByte),
                        at::arange(0, 16, at::TensorOptions(at::kByte)).view({1, 4, 4}).slice(1, 1, 3).slice(2, 1, 3)));
}

TEST(TransformPipeline, RandomCropsStayInsideAndVary) {
  const at::Tensor first = transformed(R"([{"op": "random_crop", "size": 3}])", numbered(9, 9), 1);
  EXPECT_EQ(first.sizes(), (std::vector<int64_t>{1, 3, 3}));
  // Neighbours of a crop of the numbered image differ by 1 in a row and by 9 in a column.
  EXPECT_NEAR(first[0][0][1].sub(first[0][0][0]).item<float>() * 255, 1, 1e-3);
  EXPECT_NEAR(first[0][1][0].sub(first[0][0][0]).item<float>() * 255, 9, 1e-3);
  EXPECT_FALSE(at::equal(first, transformed(R"([{"op": "random_crop", "size": 3}])", numbered(9, 9), 2)));
}

TEST(TransformPipeline, FlipsWithItsProbability) {
  const at::Tensor flipped = transformed(R"([{"op": "flip", "probability": 1.0}])", numbered(1, 3)).mul(255);
  EXPECT_FLOAT_EQ(flipped[0][0][0].item<float>(), 2);
  EXPECT_FLOAT_EQ(transformed(R"([{"op": "flip", "probability": 0.0}])", numbered(1, 3))[0][0][0].item<float>(), 0);
}

TEST(TransformPipeline, ResizesTheShorterSideAndKeepsTheAspect) {
  EXPECT_EQ(transformed(R"([{"op": "resize", "size": [4]}])", at::zeros({3, 8, 12}, at::kByte)).sizes(),
            (std::vector<int64_t>{3, 4, 6}));
  EXPECT_EQ(transformed(R"([{"op": "resize", "size": [4, 5], "filter": "bicubic"}])", at::zeros({3, 8, 12}, at::kByte))
                .sizes(),
            (std::vector<int64_t>{3, 4, 5}));
}

TEST(TransformPipeline, HalvingAveragesPixelsByHand) {
  // Antialiased bilinear at scale 2: triangle weights 1/8 3/8 3/8 1/8 inside; a constant stays constant.
  const at::Tensor constant = transformed(R"([{"op": "resize", "size": [2, 2]}])", at::full({1, 4, 4}, 100, at::kByte));
  EXPECT_NEAR(constant[0][1][1].item<float>() * 255, 100, 1e-3);
  at::Tensor edge = at::zeros({1, 1, 8}, at::kByte);
  edge.slice(2, 4).fill_(80);
  const at::Tensor half = transformed(R"([{"op": "resize", "size": [1, 4]}])", edge).mul(255);
  EXPECT_NEAR(half[0][0][1].item<float>(), 10, 1);  // 80 * 1/8
  EXPECT_NEAR(half[0][0][2].item<float>(), 70, 1);  // 80 * 7/8
}

TEST(TransformPipeline, RandomResizedCropGivesTheAskedSizeFromEveryImage) {
  for (const int64_t width : {1, 5, 64})
    EXPECT_EQ(
        transformed(R"([{"op": "random_resized_crop", "size": 16}])", at::zeros({3, 20, width}, at::kByte)).sizes(),
        (std::vector<int64_t>{3, 16, 16}));
}

TEST(TransformPipeline, RefusesWhatCannotWork) {
  EXPECT_THROW(transformed(R"([{"op": "center_crop", "size": 5}])", numbered(4, 4)), UsageError);
  EXPECT_THROW(transformed(R"([{"op": "sharpen"}])", numbered(4, 4)), UsageError);
  EXPECT_THROW(transformed(R"([{"size": 4}])", numbered(4, 4)), UsageError);
  EXPECT_THROW(transformed(R"([{"op": "resize", "size": []}])", numbered(4, 4)), UsageError);
  EXPECT_THROW(transformed(R"([{"op": "normalize", "mean": [0.5, 0.5], "std": [1]}])", numbered(4, 4)), UsageError);
  EXPECT_THROW(transformed(R"([{"op": "normalize", "preset": "imagenet"}])", numbered(4, 4)),
               UsageError);  // 3 means, 1 channel
  EXPECT_THROW(
      transformed(R"([{"op": "normalize", "preset": "half"}, {"op": "normalize", "preset": "half"}])", numbered(4, 4)),
      UsageError);
}

}  // namespace
}  // namespace sparsight::pipeline_test
