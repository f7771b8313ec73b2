// The V-MoE losses against the worked example of tests/moe/vmoe_example.h.
#include <gtest/gtest.h>

#include "sparsight/moe/losses/cv_squared.h"
#include "sparsight/moe/losses/importance.h"
#include "sparsight/moe/losses/load.h"
#include "sparsight/moe/losses/routing_loss.h"
#include "sparsight/moe/register_moe.h"
#include "sparsight/moe/routers/softmax_topk.h"
#include "tests/moe/vmoe_example.h"
#include "tests/support/gradcheck.h"
#include "tests/support/random_tensor.h"

namespace sparsight {

class VmoeLosses : public testing::TestWithParam<at::ScalarType> {
 protected:
  at::Tensor logits() const { return test::example_logits().to(GetParam()).requires_grad_(true); }
  Routing route(const at::Tensor& clean) const {
    return route_softmax_topk(clean, test::example_epsilon().to(GetParam()), 0.25, 2, false);
  }
  void expect_near(const at::Tensor& got, const at::Tensor& expected) const {
    EXPECT_TRUE(torch::allclose(got.to(torch::kDouble), expected, 0, test::example_tolerance(GetParam()))) << got;
  }
};

TEST_P(VmoeLosses, Importance) {
  const at::Tensor clean = logits();
  const Routing routing = route(clean);
  expect_near(dense_importance(routing), torch::tensor({0.656392, 0.807041, 1.026386, 0.510181}, torch::kDouble));
  const at::Tensor loss = importance_loss(routing);
  expect_near(loss, torch::tensor(0.064853, torch::kDouble));
  loss.backward();
  expect_near(clean.grad(), torch::tensor({{-0.013804, 0.010846, 0.043706, -0.040748},
                                           {-0.012148, -0.021931, 0.059306, -0.025228},
                                           {-0.012291, 0.011950, 0.044542, -0.044200}},
                                          torch::kDouble));
}

TEST_P(VmoeLosses, Load) {
  const at::Tensor clean = logits();
  const Routing routing = route(clean);
  const at::Tensor probability = load_probability(routing);
  expect_near(probability, torch::tensor({{0.964070, 0.000003, 0.000968, 0.211855},
                                          {0.000000, 0.344578, 0.999995, 0.000001},
                                          {0.004661, 0.999663, 0.420740, 0.274253}},
                                         torch::kDouble));
  expect_near(probability.mean(0), torch::tensor({0.322910, 0.448082, 0.473901, 0.162036}, torch::kDouble));
  const at::Tensor loss = load_loss(routing);
  expect_near(loss, torch::tensor(0.123314, torch::kDouble));
  loss.backward();
  expect_near(clean.grad(), torch::tensor({{-0.030715, 0.000005, 0.001387, 0.029323},
                                           {0.000000, -0.000006, 0.000011, -0.000005},
                                           {-0.005284, 0.000352, 0.423443, -0.418511}},
                                          torch::kDouble));
}

TEST_P(VmoeLosses, WeightedSum) {
  const Routing routing = route(logits());
  at::Tensor total = torch::zeros({}, GetParam());
  for (const NamedLoss& loss : compute_losses(routing, LossOptions())) total = total + loss.weight * loss.value;
  EXPECT_NEAR(total.item<double>(), 0.000940835, 1e-8);  // 0.005 * (0.064853 + 0.123314)
}

INSTANTIATE_TEST_SUITE_P(Types, VmoeLosses, testing::Values(torch::kFloat, torch::kDouble));

TEST(VmoeLoss, GradientsAgreeWithCentralDifferences) {
  at::Tensor clean = test::random_tensor({12, 5}, 1) * 0.3;
  const at::Tensor epsilon = test::random_tensor({12, 5}, 2);
  const auto route = [&] { return route_softmax_topk(clean, epsilon, 0.2, 2, false); };
  EXPECT_LT(test::gradient_error([&] { return importance_loss(route()); }, {clean}), 1e-7);
  EXPECT_LT(test::gradient_error([&] { return load_loss(route()); }, {clean}), 1e-7);
}

TEST(VmoeLoss, TheTailOfTheLoadKeepsItsDigitsInFp32) {
  // threshold 0, clean logit -1.5, noise 0.25: 1 - Phi(6) = 9.865876e-10
  Routing routing = route_softmax_topk(torch::tensor({{0.f, -1.5f}}), torch::zeros({1, 2}), 0.25, 1, false);
  EXPECT_NEAR(load_probability(routing)[0][1].item<double>(), 9.865876e-10, 1e-12);
}

TEST(VmoeLoss, WithoutNoiseThereIsNoLoadTerm) {
  const Routing routing = route_softmax_topk(test::example_logits(), {}, 0, 2, false);
  const std::vector<NamedLoss> losses = compute_losses(routing, LossOptions());
  ASSERT_EQ(losses.size(), 1u);
  EXPECT_EQ(losses[0].name, "importance");
}

TEST(VmoeLoss, AWeightOfZeroSkipsTheTerm) {
  // A routing without logits cannot be evaluated: with weight 0 nothing may try.
  LossOptions none;
  for (double& weight : none.weights) weight = 0;
  EXPECT_TRUE(compute_losses(Routing(), none).empty());
}

TEST(VmoeLoss, AnEmptyPoolHasZeroLosses) {
  const Routing routing = route_softmax_topk(torch::empty({0, 4}), torch::empty({0, 4}), 0.25, 2, false);
  for (const NamedLoss& loss : compute_losses(routing, LossOptions()))
    EXPECT_EQ(loss.value.item<double>(), 0) << loss.name;
}

}  // namespace sparsight
