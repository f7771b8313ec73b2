#include "sparsight/models/smooth_channels.h"

#include <gtest/gtest.h>

#include "sparsight/models/mnist_cnn.h"
#include "sparsight/models/vit.h"
#include "tests/support/errors.h"
#include "tests/support/near.h"
#include "tests/support/program_answers.h"
#include "tests/support/random_tensor.h"

namespace sparsight::smooth_channels_test {
namespace {

constexpr ImageShape kImage{3, 16, 16, 10};

// The output of each norm has a channel that is 200 times as large as the others, and whose weights are as much
// smaller.
std::shared_ptr<Vit> make_vit_with_outliers(const std::vector<int64_t>& moe_blocks = {}) {
  VitOptions options;
  options.width = 32, options.depth = 3, options.heads = 4, options.patch = 4;
  auto model = std::make_shared<Vit>(options, ModelContext{kImage, default_moe_spec(moe_blocks)});
  initialize(*model, 3);
  const torch::NoGradGuard no_grad;
  for (const auto& item : model->named_parameters()) {
    at::Tensor parameter = item.value();
    const std::string& name = item.key();
    if (name.find("qkv.weight") != std::string::npos || name.find("fc1.weight") != std::string::npos) {
      parameter.mul_(10);
      parameter.select(1, 5).div_(200);
    } else if (name.find(".norm1.weight") != std::string::npos || name.find(".norm2.weight") != std::string::npos) {
      parameter.select(0, 5).mul_(200);
    }
  }
  return model;
}

at::Tensor images(int64_t count, uint64_t seed) {
  return test::random_tensor({count, 3, 16, 16}, seed, torch::kFloat).abs().clamp(0, 1);
}

double int8_error(const Vit& model, const at::Tensor& x) {
  const at::Tensor exact = test::program_logits(model, x);
  return (test::program_logits(model, x, {.type = WeightType::int8}) - exact).abs().mean().item<double>() /
         exact.abs().mean().item<double>();
}

}  // namespace

// By hand: sqrt(16 / 4) = 2, sqrt(1 / 4) = 0.5; at strength 1 the activations, at 0 one over the weights.
TEST(SmoothChannels, FactorsFollowEquation4) {
  const at::Tensor activations = at::tensor({16.0F, 1.0F, 0.0F, 3.0F}), weights = at::tensor({4.0F, 4.0F, 5.0F, 0.0F});
  EXPECT_TRUE(test::near(smoothing_factors(activations, weights, 0.5), at::tensor({2.0F, 0.5F, 1.0F, 1.0F}), 1e-6));
  EXPECT_TRUE(test::near(smoothing_factors(activations, weights, 1), at::tensor({16.0F, 1.0F, 1.0F, 1.0F}), 1e-6));
  EXPECT_TRUE(test::near(smoothing_factors(activations, weights, 0), at::tensor({0.25F, 0.25F, 1.0F, 1.0F}), 1e-6));
}

// At strength 1 each channel of a norm's output reaches 1 at its largest, and all of it has moved into the weights.
TEST(SmoothChannels, MovesTheOutliersIntoTheWeights) {
  const auto model = make_vit_with_outliers();
  const at::Tensor x = images(8, 1);
  const auto largest = [&](const std::string& tap) {
    return model->forward({.images = x, .taps = {tap}}).taps.at(tap).abs().flatten(0, 1).amax(0);
  };
  EXPECT_GT((largest("blocks.1.norm1")[5] / largest("blocks.1.norm1").median()).item<double>(), 50);
  EXPECT_EQ(smooth_channels(*model, {x.slice(0, 0, 3), x.slice(0, 3)}, 1), 6);
  for (const std::string tap : {"blocks.0.norm1", "blocks.1.norm1", "blocks.2.norm2"})
    EXPECT_TRUE(test::near(largest(tap), at::ones({32}), 1e-3)) << tap;
}

TEST(SmoothChannels, KeepsTheFunctionAndMakesInt8Exacter) {
  for (const std::vector<int64_t>& moe_blocks : {std::vector<int64_t>{}, {1}}) {
    const auto model = make_vit_with_outliers(moe_blocks);
    const at::Tensor seen = images(16, 1), unseen = images(8, 2);
    const at::Tensor before = model->forward({.images = unseen}).logits;
    const double error = int8_error(*model, unseen);
    EXPECT_EQ(smooth_channels(*model, {seen}, 0.5), moe_blocks.empty() ? 6 : 5);  // the router reads norm2 as well
    EXPECT_TRUE(
        test::near(model->forward({.images = unseen}).logits, before, 1e-3 * before.abs().max().item<double>()));
    EXPECT_LT(int8_error(*model, unseen), error / 3);
  }
}

TEST(SmoothChannels, RefusesModelsWithoutSuchLayersAndNan) {
  const auto plain = std::make_shared<MnistCnn>(MnistCnnOptions{}, ModelContext{{1, 28, 28, 10}, {}});
  initialize(*plain, 1);
  EXPECT_NE(testing::error_text([&] {
              smooth_channels(*plain, {at::rand({1, 1, 28, 28})}, 0.5);
            }).find("leave out --smooth"),
            std::string::npos);
  const auto model = make_vit_with_outliers();
  const torch::NoGradGuard no_grad;
  at::Tensor(model->named_parameters()["blocks.1.norm1.bias"]).select(0, 2).fill_(std::nanf(""));
  EXPECT_NE(testing::error_text([&] { smooth_channels(*model, {images(2, 1)}, 0.5); }).find("is not finite"),
            std::string::npos);
}

}  // namespace sparsight::smooth_channels_test
