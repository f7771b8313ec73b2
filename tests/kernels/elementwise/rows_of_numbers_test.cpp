// Kernels of single rows and elements, at every level, with values worked by hand.
#include <cmath>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "sparsight/kernels/elementwise/adam_step.h"
#include "sparsight/kernels/elementwise/layer_norm.h"
#include "sparsight/kernels/elementwise/softmax_cross_entropy.h"
#include "sparsight/kernels/elementwise/softmax_rows.h"
#include "sparsight/kernels/elementwise/sum_of_squares.h"
#include "tests/kernels/every_level.h"

namespace sparsight::rows_of_numbers_test {
namespace {

using cpu::Threads;
using testing::at_every_level;

void expect_near(const std::vector<float>& got, const std::vector<float>& want, float tolerance = 1e-5f) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance) << "element " << i;
}

}  // namespace

// W = 1, G = 0.5, t = 1: decay 1 - 0.1 * 0.1, M = 0.05, V = 0.0025, W = 0.99 - 0.1 (0.05 / 0.1) / sqrt(0.0025 / 0.01).
TEST(AdamStepKernel, FollowsItsFormula) {
  at_every_level([](Threads& threads) {
    std::vector<float> value(40000, 1), gradient(40000, 0.5f), first(40000), second(40000), average(40000, 2);
    const cpu::AdamParameter parameter{
        .arrays = {value.data(), gradient.data(), first.data(), second.data(), average.data(), 40000}, .updates = 1};
    cpu::adam_step(threads, {&parameter, 1},
                   {.lr = 0.1, .beta1 = 0.9, .beta2 = 0.99, .eps = 0, .weight_decay = 0.1, .average_share = 0.5});
    for (const size_t i : {size_t{0}, size_t{20001}, size_t{39999}}) {
      EXPECT_NEAR(first[i], 0.05, 1e-6);
      EXPECT_NEAR(second[i], 0.0025, 1e-8);
      EXPECT_NEAR(value[i], 0.89, 1e-6);
      EXPECT_NEAR(average[i], 1.445, 1e-6);
    }
  });
}

// Mean 2.5 and variance 1.25; the gradient is (g - mean(g) - y mean(g y)) / sqrt(1.25).
TEST(LayerNormKernel, OfARowOfFour) {
  at_every_level([](Threads& threads) {
    const std::vector<float> x{1, 2, 3, 4}, weight(4, 1), bias(4, 0), grad{1, 0, 0, 0}, residual(4, 10);
    std::vector<float> out(4), moments(2), x_grad(4), weight_grad(4), bias_grad(4);
    cpu::layer_norm(threads, {1, 4, x.data(), weight.data(), bias.data(), 0, out.data(), moments.data()});
    expect_near(out, {-1.341641f, -0.447214f, 0.447214f, 1.341641f});
    expect_near(moments, {2.5f, 0.894427f});
    cpu::layer_norm_backward(threads, {1, 4, grad.data(), x.data(), weight.data(), moments.data(), residual.data(),
                                       x_grad.data(), weight_grad.data(), bias_grad.data()});
    expect_near(x_grad, {10.268328f, 9.642229f, 9.910557f, 10.178885f});
    expect_near(weight_grad, {-1.341641f, 0, 0, 0});
    expect_near(bias_grad, {1, 0, 0, 0});
  });
}

// Probabilities 1/4 and 3/4; with smoothing 0.2 the targets are 0.9 and 0.1.
TEST(CrossEntropyKernel, OfTwoClasses) {
  at_every_level([](Threads& threads) {
    const std::vector<float> logits{0, std::log(3.0f)}, grad{2}, shares{0.9f, 0.1f};
    const int64_t label = 0;
    std::vector<float> loss(1), moments(2), logits_grad(2);
    const auto expect = [&](const cpu::CrossEntropyRows& rows, float want, const std::vector<float>& want_grad) {
      cpu::softmax_cross_entropy(threads, rows, loss.data(), moments.data());
      cpu::softmax_cross_entropy_backward(threads, rows, moments.data(), grad.data(), logits_grad.data());
      EXPECT_NEAR(loss[0], want, 1e-5);
      expect_near(logits_grad, want_grad);
    };
    cpu::CrossEntropyRows rows{.rows = 1, .classes = 2, .logits = logits.data(), .labels = &label};
    expect(rows, 1.386294f, {-1.5f, 1.5f});
    rows.label_smoothing = 0.2;
    expect(rows, 1.276433f, {-1.3f, 1.3f});
    expect({.rows = 1, .classes = 2, .logits = logits.data(), .targets = shares.data()}, 1.276433f, {-1.3f, 1.3f});
  });
}

TEST(SoftmaxKernel, OfManyRows) {
  at_every_level([](Threads& threads) {
    constexpr int64_t kRows = 5000;
    std::vector<float> x(2 * kRows), out(2 * kRows);
    for (size_t r = 0; r < kRows; ++r) x[2 * r] = static_cast<float>(r), x[2 * r + 1] = x[2 * r] + std::log(3.0f);
    cpu::softmax_rows(threads, x.data(), out.data(), kRows, 2);
    for (size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], i % 2 ? 0.75f : 0.25f, 1e-4) << i;
  });
}

TEST(SumOfSquaresKernel, OfBothTypesAndManyChunks) {
  at_every_level([](Threads& threads) {
    const std::vector<float> floats{3, 4}, many(50000, 0.5f);
    const std::vector<double> doubles{1, 2};
    const std::vector<cpu::Elements> arrays{floats, doubles, many};
    EXPECT_DOUBLE_EQ(cpu::sum_of_squares(threads, arrays), 9 + 16 + 1 + 4 + 12500);
    EXPECT_EQ(cpu::sum_of_squares(threads, {}), 0);
  });
}

}  // namespace sparsight::rows_of_numbers_test
