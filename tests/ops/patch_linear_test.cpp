#include "sparsight/ops/patch_linear.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "sparsight/core/error.h"
#include "sparsight/ops/twice_differentiable.h"
#include "tests/ops/expert_cases.h"
#include "tests/support/gradcheck.h"
#include "tests/support/random_tensor.h"
#include "tests/support/thread_count.h"

namespace sparsight::patch_linear_test {
namespace {

struct Case {
  int64_t images, channels, side, down, across, width;  // `down` times `across` patches
};
const std::vector<Case>& ragged_cases() {
  static const std::vector<Case> cases{{1, 1, 1, 1, 1, 1},     {2, 3, 4, 3, 5, 10},   {3, 5, 7, 2, 3, 33},
                                       {1, 3, 16, 14, 14, 40}, {13, 3, 32, 7, 7, 17}, {2, 2, 20, 1, 2, 64},
                                       {7, 1, 3, 11, 9, 192}};
  return cases;
}

struct Leaves {
  at::Tensor images, weight, bias;
  std::vector<at::Tensor> gradients(const at::Tensor& out, const at::Tensor& grad) const {
    return torch::autograd::grad({out}, {images, weight, bias}, {grad});
  }
};
Leaves make_leaves(const Case& c) {
  return {test::random_tensor({c.images, c.channels, c.down * c.side, c.across * c.side}, 1).to(torch::kFloat),
          test::random_tensor({c.width, c.channels, c.side, c.side}, 2).to(torch::kFloat) * 0.3,
          test::random_tensor({c.width}, 3).to(torch::kFloat)};
}
Leaves with_gradients(const Leaves& leaves, at::ScalarType type) {
  const auto leaf = [&](const at::Tensor& x) { return x.detach().to(type).requires_grad_(true); };
  return {leaf(leaves.images), leaf(leaves.weight), leaf(leaves.bias)};
}

// The definition: a convolution whose stride is its kernel size.
at::Tensor strided_convolution(const Leaves& l) {
  return at::conv2d(l.images, l.weight, l.bias, l.weight.size(2)).flatten(2).transpose(1, 2);
}

double error(const at::Tensor& value, const at::Tensor& exact) {
  if (exact.numel() == 0) return 0;
  return ((value.to(torch::kDouble) - exact).abs().max() / exact.abs().max().clamp_min(1)).item<double>();
}

}  // namespace

// Patches (1 2 5 6) and (3 4 7 8) of a 2 x 4 image; the weights are 1, 0, -1, 2 and the bias is 0.5:
//   1 - 5 + 12 + 0.5 = 8.5 and 3 - 7 + 16 + 0.5 = 12.5.
// With the gradient (2, 10): pixels 2 (1 0 / -1 2) and 10 (1 0 / -1 2); weights 2 (1 2 5 6) + 10 (3 4 7 8) = (32 44 80
// 92); bias 12.
TEST(PatchLinear, IsWorkedOutByHand) {
  const Leaves l = with_gradients({torch::arange(1, 9).view({1, 1, 2, 4}),
                                   torch::tensor({1.0, 0.0, -1.0, 2.0}).view({1, 1, 2, 2}), torch::tensor({0.5})},
                                  torch::kFloat);
  const at::Tensor out = patch_linear(l.images, l.weight, l.bias);
  EXPECT_TRUE(torch::equal(out, torch::tensor({8.5f, 12.5f}).view({1, 2, 1})));
  const std::vector<at::Tensor> grads = l.gradients(out, torch::tensor({2.0f, 10.0f}).view({1, 2, 1}));
  EXPECT_TRUE(torch::equal(grads[0].flatten(), torch::tensor({2.0f, 0.0f, 10.0f, 0.0f, -2.0f, 4.0f, -10.0f, 20.0f})));
  EXPECT_TRUE(torch::equal(grads[1].flatten(), torch::tensor({32.0f, 44.0f, 80.0f, 92.0f})));
  EXPECT_EQ(grads[2].item<float>(), 12);
}

// Output and gradients, at each level of instructions, against torch's convolution in float64.
TEST(PatchLinear, EqualsTheStridedConvolution) {
  for (const Case& c : ragged_cases()) {
    const Leaves exact = with_gradients(make_leaves(c), torch::kDouble);
    const at::Tensor expected = strided_convolution(exact);
    const at::Tensor grad = test::random_tensor(expected.sizes().vec(), 4).to(torch::kFloat);
    const std::vector<at::Tensor> expected_grads = exact.gradients(expected, grad.to(torch::kDouble));
    test::at_each_level([&](const std::string& level) {
      const Leaves l = with_gradients(make_leaves(c), torch::kFloat);
      const at::Tensor out = patch_linear(l.images, l.weight, l.bias);
      ASSERT_EQ(out.sizes(), expected.sizes());
      EXPECT_LT(error(out, expected), 2e-6) << level << ", side " << c.side;
      const std::vector<at::Tensor> grads = l.gradients(out, grad);
      for (size_t i = 0; i < grads.size(); ++i)
        EXPECT_LT(error(grads[i], expected_grads[i]), 2e-6) << level << ", side " << c.side << ", gradient " << i;
      const torch::NoGradGuard no_grad;
      EXPECT_TRUE(torch::equal(patch_linear(l.images, l.weight, l.bias), out)) << level;
    });
  }
}

TEST(PatchLinear, HasTheSameBitsForAnyNumberOfThreads) {
  for (const Case& c : ragged_cases()) {
    const Leaves l = with_gradients(make_leaves(c), torch::kFloat);
    std::vector<at::Tensor> first;
    for (const int threads : {1, 2, 4}) {
      const test::ThreadCount count(threads);
      const at::Tensor out = patch_linear(l.images, l.weight, l.bias);
      std::vector<at::Tensor> all = l.gradients(out, torch::ones_like(out));
      all.push_back(out);
      if (first.empty()) first = all;
      for (size_t i = 0; i < all.size(); ++i)
        EXPECT_TRUE(torch::equal(all[i], first[i])) << threads << " threads, side " << c.side << ", tensor " << i;
    }
  }
}

// Channels last, every second column, and one image for all of a batch.
TEST(PatchLinear, ReadsImagesOfAnyStrides) {
  const Leaves l = make_leaves({2, 3, 4, 3, 5, 10});
  const at::Tensor out = patch_linear(l.images, l.weight, l.bias);
  const at::Tensor wide = l.images.repeat_interleave(2, 3);
  EXPECT_TRUE(torch::equal(patch_linear(l.images.to(torch::MemoryFormat::ChannelsLast), l.weight, l.bias), out));
  EXPECT_TRUE(torch::equal(patch_linear(wide.slice(3, 0, wide.size(3), 2), l.weight, l.bias), out));
  const at::Tensor repeated = l.images.slice(0, 0, 1).expand({2, -1, -1, -1}).detach().requires_grad_(true);
  const at::Tensor both = patch_linear(repeated, l.weight, l.bias);
  EXPECT_TRUE(torch::equal(both[1], out[0]));
  both.sum().backward();
  EXPECT_TRUE(torch::equal(repeated.grad()[0], repeated.grad()[1]));
}

// Only gradients that are wanted are computed: of frozen weights, none.
TEST(PatchLinear, ComputesTheGradientsThatAreWanted) {
  const Leaves l = make_leaves({2, 3, 4, 3, 5, 10});
  const at::Tensor pixels = l.images.clone().requires_grad_(true), weight = l.weight.clone().requires_grad_(true);
  patch_linear(pixels, l.weight, l.bias).sum().backward();
  EXPECT_TRUE(pixels.grad().defined());
  patch_linear(l.images, weight, l.bias).sum().backward();
  EXPECT_TRUE(weight.grad().defined());
  EXPECT_FALSE(l.images.grad().defined());
}

TEST(PatchLinear, HasASecondDerivativeOnlyWhereItIsAskedFor) {
  const Leaves l = with_gradients(make_leaves({1, 2, 2, 2, 1, 3}), torch::kFloat);
  const auto second = [&] {
    const at::Tensor out = patch_linear(l.images, l.weight, l.bias).square().sum();
    return torch::autograd::grad({out}, {l.images}, {}, /*retain_graph=*/true, /*create_graph=*/true)[0];
  };
  EXPECT_THROW(second(), Error);
  const TwiceDifferentiable twice;
  EXPECT_TRUE(second().requires_grad());
}

// Torch's convolution is used there; against differences.
TEST(PatchLinear, GradientsOfTheReferenceFollowDifferences) {
  const TwiceDifferentiable twice;
  const Leaves l{test::random_tensor({2, 2, 4, 6}, 1), test::random_tensor({3, 2, 2, 2}, 2),
                 test::random_tensor({3}, 3)};
  const at::Tensor upstream = test::random_tensor({2, 6, 3}, 4);
  EXPECT_LT(test::gradient_error([&] { return (patch_linear(l.images, l.weight, l.bias) * upstream).sum(); },
                                 {l.images, l.weight, l.bias}),
            1e-7);
}

TEST(PatchLinear, RefusesPartsOfPatches) {
  const Leaves l = make_leaves({2, 3, 4, 3, 5, 10});
  EXPECT_ANY_THROW(patch_linear(l.images.slice(3, 0, 10), l.weight, l.bias));
}

}  // namespace sparsight::patch_linear_test
