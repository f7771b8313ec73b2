#include "sparsight/nn/conv.h"

#include <gtest/gtest.h>

#include "sparsight/nn/glorot.h"
#include "tests/support/gradcheck.h"
#include "tests/support/random_tensor.h"

namespace sparsight::conv_test {

// A 3x3 kernel of ones that counts: 1 for each pixel of the image that a window sees.
at::Tensor counted(int64_t side, int64_t stride, ConvPadding padding) {
  Conv conv(ConvOptions{1, 1, 3, stride, true, padding});
  const torch::NoGradGuard no_grad;
  conv->weight.fill_(1);
  return conv->forward(torch::ones({1, 1, side, side}))[0][0];
}

at::Tensor table(std::vector<std::vector<double>> rows) {
  std::vector<at::Tensor> all;
  for (const auto& row : rows) all.push_back(torch::tensor(row, torch::kFloat));
  return torch::stack(all);
}

// Stride 2 on 4 pixels: "same" starts windows at pixels 0 and 2, of which the second one hangs over the end by one;
// centred padding starts them at -1 and 1.
TEST(Conv, P29_SamePaddingAtStrideTwoIsBelowAndToTheRight) {
  EXPECT_TRUE(torch::equal(counted(4, 2, ConvPadding::same), table({{9, 6}, {6, 4}})));
  EXPECT_TRUE(torch::equal(counted(4, 2, ConvPadding::centred), table({{4, 6}, {6, 9}})));
  // On odd sides, and at stride 1, both are alike.
  for (const auto& [side, stride] : {std::pair{5, 2}, {5, 1}, {4, 1}})
    EXPECT_TRUE(torch::equal(counted(side, stride, ConvPadding::same), counted(side, stride, ConvPadding::centred)));
}

TEST(Conv, A1x1KernelTakesEverySecondPixelAtStrideTwo) {
  Conv conv(ConvOptions{1, 1, 1, 2, false, ConvPadding::same});
  const torch::NoGradGuard no_grad;
  conv->weight.fill_(1);
  const at::Tensor x = torch::arange(16, torch::kFloat).view({1, 1, 4, 4});
  EXPECT_TRUE(torch::equal(conv->forward(x)[0][0], table({{0, 2}, {8, 10}})));
}

TEST(Conv, GradientsFollowDifferencesWhereEdgesDiffer) {
  Conv conv(ConvOptions{2, 3, 3, 2, true, ConvPadding::same, ConvInit::glorot_uniform});
  initialize(*conv, 1);
  conv->to(torch::kDouble);
  const at::Tensor x = test::random_tensor({2, 2, 4, 6}, 1), upstream = test::random_tensor({2, 3, 2, 3}, 2);
  std::vector<at::Tensor> inputs = conv->parameters();
  inputs.push_back(x);
  EXPECT_LT(test::gradient_error([&] { return (conv->forward(x) * upstream).sum(); }, inputs), 1e-8);
}

// The first outputs of a stack of such layers are its inputs; the others start as PyTorch's do: |w| <= 1 / sqrt(9 * 3).
TEST(Conv, PassesItsInputsOnWithDiracInitialisation) {
  for (const int64_t out : {2, 3, 8}) {
    ConvOptions options{3, out};
    options.init = ConvInit::dirac;
    Conv conv(options);
    initialize(*conv, 1);
    const at::Tensor x = test::random_tensor({2, 3, 5, 4}, 1, torch::kFloat), y = conv->forward(x);
    const int64_t passed = std::min<int64_t>(out, 3);
    EXPECT_TRUE(torch::equal(y.narrow(1, 0, passed), x.narrow(1, 0, passed))) << out;
    if (out == passed) continue;
    const double largest = conv->weight.narrow(0, passed, out - passed).abs().max().item<double>();
    EXPECT_LE(largest, 0.19246);
    EXPECT_GT(largest, 0.17);
  }
}

// limit = sqrt(6 / (9 * 16 + 9 * 160)) = 0.061546 for 16 -> 160 channels; the variance is limit² / 3 = 1 / 792.
TEST(Conv, StartsAsGlorotAndBengioSay) {
  Conv conv(ConvOptions{16, 160, 3, 1, true, ConvPadding::same, ConvInit::glorot_uniform});
  initialize(*conv, 3);
  EXPECT_LE(conv->weight.abs().max().item<double>(), 0.061546);
  EXPECT_GT(conv->weight.abs().max().item<double>(), 0.0615);
  EXPECT_NEAR(conv->weight.var().item<double>() * 792, 1, 0.02);
  EXPECT_EQ(conv->bias.abs().max().item<double>(), 0);
  GlorotLinear head(640, 1);  // sqrt(6 / 641) = 0.096749
  initialize(*head, 3);
  EXPECT_LE(head->weight.abs().max().item<double>(), 0.096749);
  EXPECT_GT(head->weight.abs().max().item<double>(), 0.095);
}

// Channel 0 is summed by ones, channel 1 by twos, and neither sees the other: of a 3x3 map of 1 and of 10 the centre is
// 9 and 180, a corner 4 and 80.
TEST(Conv, AsManyGroupsAsChannelsAreOneKernelForEach) {
  Conv conv(ConvOptions{.in = 2, .out = 2, .groups = 2});
  EXPECT_EQ(conv->weight.sizes(), (std::vector<int64_t>{2, 1, 3, 3}));
  const torch::NoGradGuard no_grad;
  conv->weight[0].fill_(1), conv->weight[1].fill_(2);
  at::Tensor x = torch::ones({1, 2, 3, 3});
  x[0][1].fill_(10);
  const at::Tensor y = conv->forward(x);
  EXPECT_EQ(y[0][0][1][1].item<float>(), 9);
  EXPECT_EQ(y[0][0][0][0].item<float>(), 4);
  EXPECT_EQ(y[0][1][1][1].item<float>(), 180);
  EXPECT_EQ(y[0][1][0][0].item<float>(), 80);
}

// 6 channels in 3 groups of 2 to 9: 9 * 2 * 9 = 162 weights, applied at each of 4 * 3 outputs of stride 2.
TEST(Conv, CostsAnInputOfItsGroupOnly) {
  const Conv conv(ConvOptions{.in = 6, .out = 9, .stride = 2, .groups = 3});
  const Cost cost = conv->cost({7, 6});
  EXPECT_EQ(cost.parameters, 162);
  EXPECT_EQ(conv->weight.numel(), 162);
  EXPECT_EQ(cost.multiply_adds, 162 * 12);
}

// torchvision's kaiming_normal_(mode = "fan_out") of a [C,1,3,3] weight: variance 2 / (9 C), as for one group.
TEST(Conv, DepthwiseKernelsStartAsTorchvisions) {
  Conv conv(ConvOptions{.in = 2000, .out = 2000, .groups = 2000});
  initialize(*conv, 1);
  EXPECT_NEAR(conv->weight.var().item<double>() * 9 * 2000 / 2, 1, 0.05);
}

TEST(Conv, GradientsOfGroupsFollowDifferences) {
  for (const ConvPadding padding : {ConvPadding::centred, ConvPadding::same}) {
    Conv conv(ConvOptions{.in = 4, .out = 4, .stride = 2, .bias = true, .padding = padding, .groups = 4});
    initialize(*conv, 1);
    conv->to(torch::kDouble);
    const at::Tensor x = test::random_tensor({2, 4, 4, 6}, 1), upstream = test::random_tensor({2, 4, 2, 3}, 2);
    std::vector<at::Tensor> inputs = conv->parameters();
    inputs.push_back(x);
    EXPECT_LT(test::gradient_error([&] { return (conv->forward(x) * upstream).sum(); }, inputs), 1e-8);
  }
}

}  // namespace sparsight::conv_test
