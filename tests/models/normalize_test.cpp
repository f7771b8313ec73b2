#include "sparsight/models/normalize.h"

#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>

#include <limits>

#include "sparsight/data/transforms/pipeline.h"
#include "tests/support/errors.h"

namespace sparsight::normalize_test {
namespace {

const PixelStatistics kHalf{{0.5}, {0.25}};

// Every byte in each channel: [C,16,16].
at::Tensor all_bytes(int64_t channels) {
  return torch::arange(256, torch::kByte).view({1, 16, 16}).expand({channels, 16, 16}).contiguous();
}

}  // namespace

// (0.2 - 0.5) / 0.25 = -1.2; outside 0..1, (3 - 0.5) / 0.25 = 10 and (-1 - 0.5) / 0.25 = -6.
TEST(Normalize, ByHandInEveryNumberType) {
  for (const auto type : {torch::kFloat, torch::kDouble, torch::kBFloat16, torch::kHalf}) {
    const at::Tensor images = torch::tensor({0.2, 3., -1.}).to(type).view({1, 1, 1, 3}), before = images.clone();
    const at::Tensor result = Normalize(kHalf, 1).forward(images);
    EXPECT_EQ(result.scalar_type(), type);
    const double tolerance = type == torch::kDouble ? 1e-7 : type == torch::kFloat ? 1e-6 : 1e-2;
    EXPECT_NEAR(result[0][0][0][0].item<double>(), -1.2, tolerance);
    EXPECT_NEAR(result[0][0][0][1].item<double>(), 10, 2e-6);
    EXPECT_NEAR(result[0][0][0][2].item<double>(), -6, 2e-6);
    EXPECT_TRUE(torch::equal(images, before));
  }
}

// The input of models trained before normalisation was part of the model: bytes, normalised by the data pipeline.
TEST(Normalize, GivesTheBitsOfNormalisedBytes) {
  for (const std::string preset : {"imagenet", "cifar10", "cifar100", "mnist", "half"}) {
    NormalizeOptions options;
    options.preset = preset;
    const int64_t channels = preset == "mnist" ? 1 : 3;
    const TransformPipeline pipeline(Json::array({{{"op", "normalize"}, {"preset", preset}}}), "transforms.eval");
    ViewRandom random(RandomStream(0, "test"));
    const at::Tensor pixels = pipeline(all_bytes(channels), random);
    const at::Tensor expected = make_normalize(options)(all_bytes(channels), random);
    const Normalize normalize(pipeline.statistics(), channels);
    EXPECT_TRUE(torch::equal(normalize.forward(pixels.unsqueeze(0))[0], expected)) << preset;
    EXPECT_TRUE(normalize.statistics() == pipeline.statistics());
  }
}

TEST(Normalize, EachChannelHasItsOwnAndLayoutDoesNotMatter) {
  const Normalize normalize({{0, 0.5, 1}, {1, 0.5, 0.1}}, 3);
  const at::Tensor images = torch::full({2, 3, 4, 5}, 0.75);
  const at::Tensor result = normalize.forward(images);
  EXPECT_NEAR(result[1][0][3][4].item<double>(), 0.75, 1e-6);
  EXPECT_NEAR(result[1][1][3][4].item<double>(), 0.5, 1e-6);   // 0.25 / 0.5
  EXPECT_NEAR(result[1][2][3][4].item<double>(), -2.5, 1e-6);  // -0.25 / 0.1
  EXPECT_TRUE(torch::equal(normalize.forward(images.contiguous(at::MemoryFormat::ChannelsLast)), result));
}

// d/dx (x - mean) / std = 1 / std: attacks differentiate through it.
TEST(Normalize, PassesGradientsToThePixels) {
  const at::Tensor images = torch::rand({1, 1, 2, 2}).requires_grad_(true);
  Normalize(kHalf, 1).forward(images).sum().backward();
  EXPECT_TRUE(torch::allclose(images.grad(), torch::full({1, 1, 2, 2}, 4.), 1e-6));
}

TEST(Normalize, IsInFp32UnderAutocast) {
  const at::Tensor images = torch::rand({2, 1, 4, 4});
  const Normalize normalize(kHalf, 1);
  const at::Tensor expected = normalize.forward(images);
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  at::autocast::set_autocast_enabled(at::kCPU, true);
  const at::Tensor result = normalize.forward(images);
  at::autocast::set_autocast_enabled(at::kCPU, false);
  EXPECT_TRUE(torch::equal(result, expected));
  EXPECT_EQ(result.scalar_type(), torch::kFloat);
}

TEST(Normalize, RefusesStatisticsThatCannotBe) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  const auto refusal = [](const PixelStatistics& statistics, int64_t channels) {
    return testing::error_text<UsageError>([&] { Normalize(statistics, channels); });
  };
  EXPECT_EQ(refusal(kHalf, 1), "");
  for (const double std : {0., -1., nan, inf})
    EXPECT_NE(refusal({{0.5}, {std}}, 1).find("std above 0, got mean [0.5] and std ["), std::string::npos) << std;
  for (const double mean : {nan, inf}) EXPECT_NE(refusal({{mean}, {1}}, 1).find("finite means"), std::string::npos);
  EXPECT_EQ(refusal({{0, 0, 0}, {1, 1, 1}}, 1), "normalize has 3 means, but the images have 1 channels");
  EXPECT_NE(refusal({{0, 0, 0}, {1}}, 3).find("equal length, got 3 and 1"), std::string::npos);
  EXPECT_NE(refusal({{}, {}}, 3).find("equal length, got 0 and 0"), std::string::npos);
  Normalize normalize(kHalf, 1);
  EXPECT_THROW(normalize.set({{0.5}, {0}}), UsageError);
  EXPECT_TRUE(normalize.statistics() == kHalf);
}

}  // namespace sparsight::normalize_test
