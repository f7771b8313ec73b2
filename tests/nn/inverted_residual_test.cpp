// The block of MobileNetV2: by hand from its names, cost, gradients.
#include "sparsight/nn/inverted_residual.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/cost_coverage.h"
#include "tests/support/gradcheck.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::inverted_residual_test {
namespace {

std::shared_ptr<InvertedResidual> make_block(const InvertedResidualOptions& options) {
  auto block = std::make_shared<InvertedResidual>(options);
  initialize(*block, 1);
  return block;
}

}  // namespace

// Running mean 0, variance 1; the biases make ReLU6 cut at both ends.
TEST(InvertedResidual, IsWhatItsNamesSay) {
  for (const auto& [in, out, stride] : {std::tuple{4, 4, 1}, {4, 6, 1}, {4, 4, 2}}) {
    const auto block = make_block({.in = in, .out = out, .stride = stride, .expand = 3});
    const auto p = block->named_parameters();
    ASSERT_EQ(p.size(), 9u);
    {
      const torch::NoGradGuard no_grad;
      for (const char* name : {"conv.0.1.bias", "conv.1.1.bias"})
        p[name].copy_(test::random_tensor(p[name].sizes(), 5, torch::kFloat) * 6);
    }
    const at::Tensor x = test::random_tensor({2, in, 5, 4}, 2, torch::kFloat);
    const double scale = 1 / std::sqrt(1 + 1e-5);
    const auto shifted = [&](const at::Tensor& y, const char* bias) {
      return at::clamp(y * scale + p[bias].view({1, -1, 1, 1}), 0, 6);
    };
    at::Tensor y = shifted(at::conv2d(x, p["conv.0.0.weight"]), "conv.0.1.bias");
    y = shifted(at::conv2d(y, p["conv.1.0.weight"], {}, stride, 1, 1, 3 * in), "conv.1.1.bias");
    y = at::conv2d(y, p["conv.2.weight"]) * scale;
    if (stride == 1 && in == out) y = y + x;
    EXPECT_TRUE(test::near(block->forward(x, false), y, 1e-5));
    const auto branch = make_block({.in = in, .out = out, .stride = stride, .expand = 3, .branch = true});
    {
      const torch::NoGradGuard no_grad;
      for (const auto& item : p) branch->named_parameters()[item.key()].copy_(item.value());
    }
    EXPECT_TRUE(test::near(branch->forward(x, false), stride == 1 && in == out ? y - x : y, 1e-5));
  }
  // Without expansion.
  const auto names = make_block({.in = 4, .out = 2, .expand = 1})->named_parameters().keys();
  EXPECT_EQ(names, (std::vector<std::string>{"conv.0.0.weight", "conv.0.1.weight", "conv.0.1.bias", "conv.1.weight",
                                             "conv.2.weight", "conv.2.bias"}));
}

// features.2 of the published network at 224 pixels: 16 -> 96 -> 24 channels, 112 x 112 -> 56 x 56.
//   parameters     16 * 96 + 2 * 96 + 9 * 96 + 2 * 96 + 96 * 24 + 2 * 24 = 5,136
//   multiply-adds  112² * 16 * 96 + 56² * (9 * 96 + 96 * 24) = 19,267,584 + 9,934,848 = 29,202,432
TEST(InvertedResidual, CostsWhatItsLayersCost) {
  const auto block = make_block({.in = 16, .out = 24, .stride = 2});
  MapSize map{112, 112};
  const std::vector<PartCost> parts = block->cost("b", map);
  EXPECT_EQ(map.height, 56);
  const Cost cost = total(parts);
  EXPECT_EQ(cost.parameters, 5136);
  EXPECT_EQ(test::parameter_count(*block), 5136);
  EXPECT_EQ(cost.multiply_adds, 29202432);
  ASSERT_EQ(parts.size(), 6u);
  EXPECT_EQ(parts[0].part, "b.conv.0.0");
  EXPECT_EQ(parts[5].part, "b.conv.3");
  // A norm is 7 operations a number and ReLU6 counts as one: 112² * 96 * 8 + 56² * (96 * 8 + 24 * 7).
  EXPECT_EQ(cost.elementwise, 12544 * 768 + 3136 * (768 + 168));
  // With a residual one more each.
  MapSize same{4, 4};
  EXPECT_EQ(total(make_block({.in = 8, .out = 8, .expand = 1})->cost("b", same)).elementwise, 16 * (8 * 8 + 8 * 7 + 8));
}

TEST(InvertedResidual, GradientsFollowDifferencesWithBatchStatistics) {
  const auto block = make_block({.in = 2, .out = 2, .expand = 2});
  block->to(torch::kDouble);
  const at::Tensor x = test::random_tensor({3, 2, 3, 2}, 2), upstream = test::random_tensor({3, 2, 3, 2}, 3);
  std::vector<at::Tensor> inputs = block->parameters();
  inputs.push_back(x);
  EXPECT_LT(test::gradient_error([&] { return (block->forward(x, true) * upstream).sum(); }, inputs), 1e-6);
}

}  // namespace sparsight::inverted_residual_test
