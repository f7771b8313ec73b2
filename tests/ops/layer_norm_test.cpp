#include "sparsight/ops/layer_norm.h"

#include <cmath>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "sparsight/ops/ref/layer_norm.h"
#include "tests/ops/expert_cases.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"
#include "tests/support/thread_count.h"

namespace sparsight::layer_norm_test {
namespace {

struct Inputs {
  at::Tensor x, weight, bias, grad;
};

Inputs random_inputs(int64_t rows, int64_t width, at::ScalarType type = torch::kFloat) {
  return {test::random_tensor({rows, width}, 1, type) * 3 + 5, test::random_tensor({width}, 2, type),
          test::random_tensor({width}, 3, type), test::random_tensor({rows, width}, 4, type)};
}

// The result, and the gradients of x, weight and bias, through autograd.
std::vector<at::Tensor> with_gradients(const Inputs& in, double epsilon = 1e-6) {
  std::vector<at::Tensor> leaves;
  for (const at::Tensor& t : {in.x, in.weight, in.bias}) leaves.push_back(t.detach().clone().requires_grad_(true));
  const at::Tensor out = layer_norm(leaves[0], leaves[1], leaves[2], epsilon);
  out.backward(in.grad);
  return {out.detach(), leaves[0].grad(), leaves[1].grad(), leaves[2].grad()};
}

std::vector<at::Tensor> exactly(const Inputs& in, double epsilon = 1e-6) {
  const at::Tensor x = test::as_double(in.x), weight = test::as_double(in.weight);
  const LayerNormOutput forward = ref::layer_norm_forward(x, weight, test::as_double(in.bias), epsilon, true);
  const LayerNormGradients back = ref::layer_norm_backward(test::as_double(in.grad), x, weight, forward.moments);
  return {forward.out, back.x, back.weight, back.bias};
}

}  // namespace

// Mean 1, variance (1 + 4 + 1) / 3 = 2: the normalised row is (-1 2 -1) / sqrt 2. For the gradient (1 0 0) and weights
// of 1: h = (1 0 0) with mean 1/3, mean(h n) = -1 / (3 sqrt 2), so dx = (2/3 - 1/6, -1/3 + 1/3, -1/3 - 1/6) / sqrt 2.
TEST(LayerNormOp, ReproducesValuesWorkedByHandAtEveryLevel) {
  const double root = std::sqrt(0.5);
  test::at_each_level([&](const std::string& level) {
    const std::vector<at::Tensor> got =
        with_gradients({torch::tensor({{0.f, 3.f, 0.f}}), torch::ones({3}), torch::tensor({10.f, 20.f, 30.f}),
                        torch::tensor({{1.f, 0.f, 0.f}})},
                       0);
    EXPECT_TRUE(test::near(got[0], torch::tensor({{10 - root, 20 + 2 * root, 30 - root}}), 1e-5)) << level;
    EXPECT_TRUE(test::near(got[1], torch::tensor({{root / 2, 0.0, -root / 2}}), 1e-6)) << level;
    EXPECT_TRUE(test::near(got[2], torch::tensor({-root, 0.0, 0.0}), 1e-6)) << level;
    EXPECT_TRUE(test::near(got[3], torch::tensor({1.0, 0.0, 0.0}), 1e-6)) << level;
  });
}

TEST(LayerNormOp, AgreesWithTheReferenceAtEveryLevelAndSize) {
  test::at_each_level([](const std::string& level) {
    for (const int64_t rows : {0, 1, 3, 65, 200})
      for (const int64_t width : {1, 2, 7, 16, 33, 384, 400, 1000}) {
        const Inputs in = random_inputs(rows, width);
        const std::vector<at::Tensor> got = with_gradients(in), want = exactly(in);
        for (size_t i = 0; i < got.size(); ++i) {
          if (width <= 2 && i == 1) continue;  // dx is 0: a difference of numbers of up to 1 / sqrt(epsilon)
          const double size = want[i].numel() > 0 ? want[i].abs().max().item<double>() : 0;
          EXPECT_TRUE(test::near(got[i], want[i], 2e-5 * size + 1e-6))
              << level << " " << rows << " x " << width << ", " << i;
        }
      }
  });
}

TEST(LayerNormOp, AddsTheResidualAndLeavesOutWhatNobodyNeeds) {
  test::at_each_level([](const std::string& level) {
    const Inputs in = random_inputs(65, 33);
    const at::Tensor residual = test::random_tensor({65, 33}, 9, torch::kFloat);
    const LayerNormOutput forward = layer_norm_forward(in.x, in.weight, in.bias, 1e-6, true);
    const LayerNormGradients all = layer_norm_backward(in.grad, in.x, in.weight, forward.moments),
                             some = layer_norm_backward(in.grad, in.x, in.weight, forward.moments, residual, false);
    EXPECT_TRUE(test::near(some.x, all.x + residual, 1e-5)) << level;
    EXPECT_FALSE(some.weight.defined() || some.bias.defined()) << level;
  });
}

TEST(LayerNormOp, GradientsFollowDifferences) {
  const Inputs in = random_inputs(4, 5, torch::kDouble);
  const auto weighted = [&] { return (layer_norm(in.x, in.weight, in.bias, 1e-3) * in.grad).sum(); };
  EXPECT_LT(test::gradient_error(weighted, {in.x, in.weight, in.bias}), 1e-7);
}

TEST(LayerNormOp, HasTheSameBitsForAnyNumberOfThreads) {
  const Inputs in = random_inputs(333, 384);
  const auto with_threads = [&](int count) {
    const test::ThreadCount threads(count);
    return with_gradients(in);
  };
  const std::vector<at::Tensor> one = with_threads(1);
  for (const int count : {2, 4}) {
    const std::vector<at::Tensor> other = with_threads(count);
    for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(torch::equal(one[i], other[i])) << count << ", " << i;
  }
}

TEST(LayerNormOp, TakesAnyLeadingAxesAndStrides) {
  const Inputs in = random_inputs(12, 6);
  const at::Tensor whole = layer_norm(in.x, in.weight, in.bias, 1e-6);
  EXPECT_TRUE(torch::equal(layer_norm(in.x.view({3, 4, 6}), in.weight, in.bias, 1e-6), whole.view({3, 4, 6})));
  EXPECT_TRUE(torch::equal(layer_norm(in.x.t().contiguous().t(), in.weight, in.bias, 1e-6), whole));
}

TEST(LayerNormOp, AConstantRowIsTheBias) {
  const at::Tensor out = layer_norm(torch::full({1, 8}, 3.f), torch::ones({8}), torch::full({8}, 2.f), 1e-6);
  EXPECT_TRUE(torch::equal(out, torch::full({1, 8}, 2.f)));
}

TEST(LayerNormOp, ShapesAndTypesThatDoNotMatchAreErrors) {
  const at::Tensor x = torch::zeros({2, 4}), w = torch::ones({4});
  EXPECT_EQ(testing::error_text([&] { layer_norm(x, torch::ones({3}), w, 1e-6); }),
            "layer norm of rows [...,4] needs weight and bias [4], got [3] and [4]");
  EXPECT_EQ(testing::error_text([&] {
              layer_norm(torch::zeros({2, 0}), w, w, 1e-6);
            }),
            "layer norm needs rows [...,D] with D >= 1, got [2, 0]");
  EXPECT_EQ(testing::error_text([&] { layer_norm(x.to(torch::kDouble), w, w, 1e-6); }),
            "layer norm needs rows, weight and bias of one floating type, got Double, Float and Float");
}

}  // namespace sparsight::layer_norm_test
