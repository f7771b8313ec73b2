// Values marked "section" are those of the specification's worked examples, computed there in float64.
#include "sparsight/papers/robust_moe/theory/smooth_moe.h"

#include <gtest/gtest.h>

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "tests/support/errors.h"

namespace sparsight::robust_moe::smooth_moe_test {
namespace {

at::Tensor numbers(std::initializer_list<double> values) { return at::tensor(values, at::kDouble); }

double distance(const at::Tensor& found, std::initializer_list<double> expected) {
  return (found.flatten() - numbers(expected)).abs().max().item<double>();
}

// Section 4.9, "Top-K gradient", which experiment 7.1a uses.
TheoryMoe example() {
  return {numbers({1, .5, -.5, 1, .25, -.75}).view({3, 2}),
          tanh_experts(numbers({1, -1, .5, .5, -1, .25}).view({3, 2}), numbers({1, 2, -1.5}), numbers({.5, -.25, 0}))};
}

const at::Tensor kPoint = numbers({.3, -.2}).view({1, 2});

// Section 4.9, "T4": 2 experts, 4 inputs, 4 outputs, f = 2 sin(6 A x + B).
TheoryMoe toy_classifier() {
  TheoryMoe moe;
  moe.router = at::empty({2, 4}, at::kDouble);
  moe.experts.phi = RidgeExperts::Phi::sine;
  moe.experts.directions = at::empty({2, 4, 4}, at::kDouble);
  moe.experts.scale = at::zeros({2, 4}, at::kDouble) + 2;
  moe.experts.shift = at::empty({2, 4}, at::kDouble);
  moe.experts.offset = at::zeros({2, 4}, at::kDouble);
  for (int64_t e = 0; e < 2; ++e)
    for (int64_t c = 0; c < 4; ++c) {
      const auto x = static_cast<double>(e), y = static_cast<double>(c);
      moe.router[e][c] = std::cos(1 + 4 * x + y);
      moe.experts.shift[e][c] = std::cos(2 + 3 * x + y);
      for (int64_t d = 0; d < 4; ++d)
        moe.experts.directions[e][c][d] = 6 * std::sin(1 + 5 * x + 2 * y + 3 * static_cast<double>(d));
    }
  return moe;
}

}  // namespace

// Section 7.1, experiment 7.1a.
TEST(SmoothMoe, A42_TheGradientSplitsIntoExpertsAndRouter) {
  const GradientSplit split = split_gradient(example(), kPoint);
  EXPECT_LT(distance(split.gates, {.384281, .221711, .394009}), 1e-6);
  EXPECT_LT(distance(split.outputs, {.535250}), 1e-6);
  EXPECT_LT(distance(smooth_outputs(example(), kPoint), {.535250}), 1e-6);
  EXPECT_LT(distance(split.mean_row, {.371927, .118344}), 1e-6);
  EXPECT_LT(distance(split.experts, {1.047515, -.212095}), 1e-6);
  EXPECT_LT(distance(split.router, {.236987, -.060859}), 1e-6);
  EXPECT_LT(distance(split.gradient(), {1.284502, -.272954}), 1e-6);
  EXPECT_LT(distance(spectral_norms(split.router), {.244676}), 1e-6);
  EXPECT_LT(distance(spectral_norms(split.gradient()), {1.313182}), 1e-6);
  EXPECT_LT(distance(example().experts.lipschitz(), {1.414214, 1.414214, 1.546165}), 1e-6);
  EXPECT_LT(distance(split.bound, {1.710880}), 1e-6);
  EXPECT_LT(distance(split.pointwise_bound, {1.525111}), 1e-6);
}

// Section 7.1: a 301 x 301 grid over [-3,3]^2.
TEST(SmoothMoe, A42_NoGradientOnTheGridExceedsTheBound) {
  const Lemma1Check found = check_lemma1(example(), square_grid(3, 301));
  EXPECT_NEAR(found.gradient, 1.569694, 1e-6);
  EXPECT_NEAR(found.router, .842682, 1e-6);
  EXPECT_NEAR(found.bound(), 2.388846, 1e-6);
  EXPECT_EQ(found.violations, 0);
  EXPECT_LT(found.tightness, 1);
  EXPECT_LT(found.difference, 1e-8);
}

// Constants that are too small are noticed: half of what the experts' slopes are.
TEST(SmoothMoe, TheCheckFindsViolations) {
  TheoryMoe wrong = example();
  wrong.router = at::zeros({3, 2}, at::kDouble);  // without a router's part the pointwise bound is the triangle's
  wrong.experts = tanh_experts(numbers({1, 0, 1, 0, 1, 0}).view({3, 2}), numbers({1, 1, 1}), numbers({0, 0, 0}));
  EXPECT_EQ(check_lemma1(wrong, at::zeros({1, 2}, at::kDouble)).violations, 0) << "equality is no violation";
  wrong.experts.phi = RidgeExperts::Phi::identity;
  wrong.experts.scale = -wrong.experts.scale;
  EXPECT_NEAR(check_lemma1(wrong, at::zeros({1, 2}, at::kDouble)).tightness, 1, 1e-12);
}

// Section 4.9, "T4": gates, logits, and the gradient of the cross-entropy, here J^T (softmax(z) - one_hot(1)).
TEST(SmoothMoe, A42_VectorOutputs) {
  const at::Tensor x = numbers({.3, .6, .5, .2}).view({1, 4});
  const GradientSplit split = split_gradient(toy_classifier(), x);
  EXPECT_LT(distance(split.gates, {.151566, .848434}), 1e-6);
  EXPECT_LT(distance(split.outputs, {.623175, 1.112664, .784485, .091677}), 1e-6);
  at::Tensor error = split.outputs[0].softmax(0);
  error[1] -= 1;
  EXPECT_LT(distance(error.matmul(split.gradient()[0]), {-6.094533, 6.231223, -6.971169, 6.649190}), 1e-6);
  const Lemma1Check found = check_lemma1(toy_classifier(), x);
  EXPECT_EQ(found.violations, 0);
  EXPECT_LT(found.difference, 1e-8);
}

// diag(3, 1) and a rotation of it: the largest singular value is 3. Of one row it is the length.
TEST(SmoothMoe, SpectralNorms) {
  EXPECT_LT(distance(spectral_norms(numbers({3, 0, 0, 1, 0, 1, -3, 0}).view({2, 2, 2})), {3, 3}), 1e-12);
  EXPECT_LT(distance(spectral_norms(numbers({3, 4}).view({1, 1, 2})), {5}), 1e-12);
}

// Section 7.1: the router's part does not change when the same constant is added to every expert.
TEST(SmoothMoe, A43_TheRoutersPartIgnoresASharedConstant) {
  TheoryMoe moe = example();
  const at::Tensor x = square_grid(3, 21), before = split_gradient(moe, x).router;
  moe.experts.offset = moe.experts.offset + 5;
  EXPECT_LT((split_gradient(moe, x).router - before).abs().max().item<double>(), 1e-12);
}

// p = 1/2: a quarter; p = 0 or 1: nothing (the paper's remarks after lemma 1).
TEST(SmoothMoe, A43_TwoExpertsInClosedForm) {
  EXPECT_NEAR(two_expert_router_norm(0.5, 3, -1, std::sqrt(8)), 2.828427, 1e-6);
  EXPECT_EQ(two_expert_router_norm(0, 3, -1, 1), 0);
  EXPECT_EQ(two_expert_router_norm(1, 3, -1, 1), 0);
  const TheoryMoe two{numbers({1, .5, -.5, 1}).view({2, 2}),
                      tanh_experts(numbers({1, -1, .5, .5}).view({2, 2}), numbers({1, 2}), numbers({.5, -.25}))};
  const GradientSplit split = split_gradient(two, kPoint);
  const at::Tensor f = two.experts.values(kPoint).flatten();
  EXPECT_NEAR(spectral_norms(split.router).item<double>(),
              two_expert_router_norm(split.gates[0][0].item<double>(), f[0].item<double>(), f[1].item<double>(),
                                     std::sqrt(1.5 * 1.5 + .5 * .5)),
              1e-14);
}

// Section 4.9, "Top-K gradient", row "eq. 1": expert 2 has the largest gate, and its output is 0.504563. On a tie the
// lowest index wins: experts 0 and 1 have equal scores at (.5, 1.5), f_0 = tanh(-1) + .5.
TEST(SmoothMoe, A44_Top1TakesOneExpertWithoutAGate) {
  EXPECT_LT(distance(top1_outputs(example(), kPoint), {.504563}), 1e-6);
  EXPECT_LT(distance(top1_outputs(example(), numbers({.5, 1.5}).view({1, 2})), {std::tanh(-1) + .5}), 1e-12);
}

TEST(SmoothMoe, RefusesInputsOfAnotherWidth) {
  EXPECT_NE(testing::error_text([] {
              split_gradient(example(), numbers({1, 2, 3}).view({1, 3}));
            }).find("[N,2]"),
            std::string::npos);
  EXPECT_NE(testing::error_text([] { square_grid(0, 3); }).find("half width above 0"), std::string::npos);
}

}  // namespace sparsight::robust_moe::smooth_moe_test
