// The head against numbers computed by hand; the comparison with autograd is in patch_sgd_test.cpp.
#include "sparsight/papers/pmoe/two_layer/two_layer_head.h"

#include <gtest/gtest.h>

#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>

#include "tests/support/random_tensor.h"

namespace sparsight::pmoe::two_layer_head_test {

const auto kDouble = at::TensorOptions().dtype(at::kDouble);

// One patch, two neurons: f = 0.5 * 1 + 4 * 0 = 0.5 with y = +1: loss log(1 + e^-0.5) = 0.474077, df = -1 / (1 + e^0.5)
// = -0.377541, and a neuron below 0 gets nothing.
TEST(TwoLayerHead, ALogisticLossByHand) {
  at::Tensor hidden = at::tensor({1.0, -2.0}, kDouble).view({1, 2});
  const HeadLoss head = two_layer_head(
      {at::tensor({0.5, 4.0}, kDouble).view({1, 2, 1}), {}, at::tensor({int64_t{1}}, at::kLong), 1}, hidden);
  EXPECT_NEAR(head.loss, 0.474077, 1e-6);
  EXPECT_EQ(head.wrong, 0);
  EXPECT_NEAR(hidden[0][0].item<double>(), -0.188770, 1e-6);
  EXPECT_EQ(hidden[0][1].item<double>(), 0);
  EXPECT_FALSE(head.grad_gate.defined());
}

// Two patches of one expert with gates 0.25 and 0.75, neurons 2 and 4, a = (1, 0, -1), divided by 2: f = (1.75, 0,
// -1.75). exp: 5.754603, 1, 0.173774, sum 6.928377. Label 1: loss = log 6.928377 = 1.935626; the largest is class 0:
// wrong. df = (0.830585, -0.855666, 0.025081); grad of gates u . df / 2 = 2 and 4 times (0.830585 - 0.025081) / 2 =
// 0.805504 and 1.611007; of neurons 0.25 and 0.75 times 0.402752.
TEST(TwoLayerHead, ThreeClassesWithGatesByHand) {
  at::Tensor hidden = at::tensor({2.0, 4.0}, kDouble).view({2, 1});
  const HeadLoss head =
      two_layer_head({at::tensor({1.0, 0.0, -1.0}, kDouble).view({1, 1, 3}),
                      at::tensor({0.25, 0.75}, kDouble).view({1, 1, 2}), at::tensor({int64_t{1}}, at::kLong), 2},
                     hidden);
  EXPECT_NEAR(head.loss, 1.935626, 1e-5);
  EXPECT_EQ(head.wrong, 1);
  EXPECT_NEAR(head.grad_gate[0][0][0].item<double>(), 0.805504, 1e-5);
  EXPECT_NEAR(head.grad_gate[0][0][1].item<double>(), 1.611007, 1e-5);
  EXPECT_NEAR(hidden[0][0].item<double>(), 0.100688, 1e-5);
  EXPECT_NEAR(hidden[1][0].item<double>(), 0.302064, 1e-5);
}

// Equation 23 with two classes whose output weights differ by those of equation 1: f_1 - f_0 is the binary logit, so
// the losses and all gradients agree.
TEST(TwoLayerHead, P8_TwoOutputsWhoseWeightsDifferByThoseOfOneAreTheBinaryNetwork) {
  constexpr int64_t kExperts = 3, kFilters = 4, kImages = 5, kPatches = 2;
  const at::Tensor hidden = test::random_tensor({kExperts * kImages * kPatches, kFilters}, 1),
                   binary = test::random_tensor({kExperts, kFilters, 1}, 2),
                   shift = test::random_tensor({kExperts, kFilters, 1}, 3),
                   gate = test::random_tensor({kExperts, kImages, kPatches}, 4).abs(),
                   labels = at::tensor({0, 1, 1, 0, 1}, at::kLong);
  at::Tensor one = hidden.clone(), two = hidden.clone();
  const HeadLoss a = two_layer_head({binary, gate, labels, 2}, one);
  const HeadLoss b = two_layer_head({at::cat({shift, shift + binary}, 2), gate, labels, 2}, two);
  EXPECT_NEAR(a.loss, b.loss, 1e-12);
  EXPECT_EQ(a.wrong, b.wrong);
  EXPECT_TRUE(at::allclose(a.grad_gate, b.grad_gate, 0, 1e-12));
  EXPECT_TRUE(at::allclose(one, two, 0, 1e-12));
  EXPECT_GT(one.abs().max().item<double>(), 0.01);
}

}  // namespace sparsight::pmoe::two_layer_head_test
