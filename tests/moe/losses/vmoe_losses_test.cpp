// The V-MoE losses against the worked example of tests/moe/vmoe_example.h.
#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "sparsight/moe/losses/importance.h"
#include "sparsight/moe/losses/load.h"
#include "sparsight/moe/losses/routing_loss.h"
#include "sparsight/moe/register_moe.h"
#include "sparsight/moe/routers/noisy_topk.h"
#include "sparsight/moe/routers/softmax_topk.h"
#include "tests/moe/vmoe_example.h"
#include "tests/support/gradcheck.h"
#include "tests/support/random_tensor.h"

namespace sparsight::vmoe_losses_test {
namespace {

LossOptions vmoe_weights() {
  return with_default_weights(LossOptions(), {{"vmoe_importance", 0.005}, {"vmoe_load", 0.005}});
}

}  // namespace

class VmoeLosses : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  at::Tensor logits() const { return test::example_logits().to(GetParam()).requires_grad_(true); }
  Routing route(const at::Tensor& clean) const {
    return route_softmax_topk(clean, test::example_epsilon().to(GetParam()), 0.25, 2, false);
  }
  void expect_near(const at::Tensor& got, const at::Tensor& expected) const {
    EXPECT_TRUE(torch::allclose(got.to(torch::kDouble), expected, 0, test::example_tolerance(GetParam()))) << got;
  }
};

TEST_P(VmoeLosses, S19_Importance) {
  const at::Tensor clean = logits();
  const Routing routing = route(clean);
  expect_near(dense_importance(routing), torch::tensor({{0.656392, 0.807041, 1.026386, 0.510181}}, torch::kDouble));
  const at::Tensor loss = vmoe_importance_loss(routing);
  expect_near(loss, torch::tensor(0.064853, torch::kDouble));
  loss.backward();
  expect_near(clean.grad(), torch::tensor({{-0.013804, 0.010846, 0.043706, -0.040748},
                                           {-0.012148, -0.021931, 0.059306, -0.025228},
                                           {-0.012291, 0.011950, 0.044542, -0.044200}},
                                          torch::kDouble));
}

TEST_P(VmoeLosses, S19_Load) {
  const at::Tensor clean = logits();
  const Routing routing = route(clean);
  const at::Tensor probability = vmoe_load_probability(routing);
  expect_near(probability, torch::tensor({{0.964070, 0.000003, 0.000968, 0.211855},
                                          {0.000000, 0.344578, 0.999995, 0.000001},
                                          {0.004661, 0.999663, 0.420740, 0.274253}},
                                         torch::kDouble));
  expect_near(probability.mean(0), torch::tensor({0.322910, 0.448082, 0.473901, 0.162036}, torch::kDouble));
  const at::Tensor loss = vmoe_load_loss(routing);
  expect_near(loss, torch::tensor(0.123314, torch::kDouble));
  loss.backward();
  expect_near(clean.grad(), torch::tensor({{-0.030715, 0.000005, 0.001387, 0.029323},
                                           {0.000000, -0.000006, 0.000011, -0.000005},
                                           {-0.005284, 0.000352, 0.423443, -0.418511}},
                                          torch::kDouble));
}

TEST_P(VmoeLosses, S19_WeightedSum) {
  const Routing routing = route(logits());
  at::Tensor total = torch::zeros({}, GetParam());
  for (const NamedLoss& loss : compute_losses(routing, vmoe_weights())) total = total + loss.weight * loss.value;
  EXPECT_NEAR(total.item<double>(), 0.000940835, 1e-8);  // 0.005 * (0.064853 + 0.123314)
}

// One token for each rotation of logits and noise: every expert has the same importance and load. With all tokens
// surely on one expert both are E - 1.
TEST_P(VmoeLosses, M19_AreZeroAtBalanceAndKnownWhereAllTokensAgree) {
  const auto rotations = [&](const std::vector<double>& values) {
    std::vector<at::Tensor> rows;
    for (int64_t j = 0; j < 4; ++j) rows.push_back(torch::tensor(values, torch::kDouble).roll(j));
    return torch::stack(rows).to(GetParam());
  };
  const at::Tensor clean = rotations({0.9, 0.2, -0.3, 0.1}).requires_grad_(true);
  const Routing even = route_softmax_topk(clean, rotations({0.3, -1, 0.7, 1.5}), 0.25, 2, false);
  const double rounding = GetParam() == torch::kFloat ? 1e-12 : 1e-28;  // of CV², the square of relative differences
  EXPECT_NEAR(vmoe_importance_loss(even).item<double>(), 0, rounding);
  EXPECT_NEAR(vmoe_load_loss(even).item<double>(), 0, rounding);
  (vmoe_importance_loss(even) + vmoe_load_loss(even)).backward();  // a minimum
  EXPECT_LT(clean.grad().abs().max().item<double>(), GetParam() == torch::kFloat ? 1e-6 : 1e-14);
  // Noise so small that a logit at its own threshold is above it with probability 1/2, the others never.
  const at::Tensor same = (torch::arange(4) < 1).to(GetParam()).expand({5, 4}) * 100;
  const Routing one = route_softmax_topk(same, torch::zeros({5, 4}, GetParam()), 0.25, 1, false);
  EXPECT_NEAR(vmoe_importance_loss(one).item<double>(), 3, test::example_tolerance(GetParam()));
  EXPECT_NEAR(vmoe_load_loss(one).item<double>(), 3, test::example_tolerance(GetParam()));
}

// The noise and all that was made with it are NaN, from the same leaf: a term computed and multiplied by 0
// would make the total and the gradient NaN.
TEST_P(VmoeLosses, S43_AWeightOfZeroKeepsTheNanOfATermOut) {
  const at::Tensor clean = logits();
  Routing routing = route(clean);
  routing.noisy_logits = routing.scores = clean * NAN;
  routing.noise_scale = clean.sum() * NAN;
  routing.gate = routing.gate * NAN;
  LossOptions all;
  std::fill(all.weights.begin(), all.weights.end(), 1);
  std::set<std::string> poisoned;
  for (const NamedLoss& loss : compute_losses(routing, all))
    if (loss.value.isnan().item<bool>()) poisoned.insert(loss.name);
  EXPECT_EQ(poisoned, (std::set<std::string>{"importance", "load", "sequence_balance", "switch", "vmoe_load"}));

  at::Tensor total = torch::zeros({}, GetParam());
  for (const NamedLoss& loss : compute_losses(routing, with_default_weights(LossOptions(), {{"vmoe_importance", 1}})))
    total = total + loss.weight * loss.value;
  expect_near(total, torch::tensor(0.064853, torch::kDouble));  // T12, and its gradient
  total.backward();
  expect_near(clean.grad(), torch::tensor({{-0.013804, 0.010846, 0.043706, -0.040748},
                                           {-0.012148, -0.021931, 0.059306, -0.025228},
                                           {-0.012291, 0.011950, 0.044542, -0.044200}},
                                          torch::kDouble));
}

INSTANTIATE_TEST_SUITE_P(Types, VmoeLosses, ::testing::Values(torch::kFloat, torch::kDouble));

TEST(VmoeLoss, GradientsAgreeWithCentralDifferences) {
  at::Tensor clean = test::random_tensor({12, 5}, 1) * 0.3;
  const at::Tensor epsilon = test::random_tensor({12, 5}, 2);
  const auto route = [&] { return route_softmax_topk(clean, epsilon, 0.2, 2, false); };
  EXPECT_LT(test::gradient_error([&] { return vmoe_importance_loss(route()); }, {clean}), 1e-7);
  EXPECT_LT(test::gradient_error([&] { return vmoe_load_loss(route()); }, {clean}), 1e-7);
}

TEST(VmoeLoss, TheTailOfTheLoadKeepsItsDigitsInFp32) {
  // threshold 0, clean logit -1.5, noise 0.25: 1 - Phi(6) = 9.865876e-10
  Routing routing = route_softmax_topk(torch::tensor({{0.f, -1.5f}}), torch::zeros({1, 2}), 0.25, 1, false);
  EXPECT_NEAR(vmoe_load_probability(routing)[0][1].item<double>(), 9.865876e-10, 1e-12);
}

// GMoE's check of both conventions: one token, logits (1,0,-1), k = 1, a standard deviation of 1/3.
TEST(VmoeLoss, G14_ConventionsOfVarianceAndOfTheComparedValue) {
  const at::Tensor logits = torch::tensor({{1., 0., -1.}}, torch::kDouble);
  const Routing r = route_softmax_topk(logits, torch::zeros({1, 3}, torch::kDouble), 1.0 / 3, 1, false);
  const auto row = [](std::vector<double> v) { return torch::tensor(v, torch::kDouble).unsqueeze(0); };
  EXPECT_TRUE(torch::allclose(vmoe_load_probability(r), row({0.5, 0.00134990, 9.87e-10}), 0, 1e-6));
  EXPECT_NEAR(vmoe_load_loss(r).item<double>(), 1.983888, 1e-6);
  EXPECT_NEAR(vmoe_load_loss(r, /*unbiased=*/true).item<double>(), 2.975832, 1e-6);
  EXPECT_TRUE(
      torch::allclose(vmoe_load_probability(r, /*of_scores=*/true), row({0.157623, 0.011731, 0.003168}), 0, 1e-6));
  EXPECT_NEAR(vmoe_load_loss(r, true, true).item<double>(), 2.278645, 1e-6);
  // Importance (3, 1, 2), of six tokens that have one expert each.
  const at::Tensor gates = torch::eye(3, torch::kDouble).index_select(0, torch::tensor({0, 0, 0, 1, 2, 2}));
  const Routing of_six = route_softmax_topk(gates.log().clamp_min(-1e3), {}, 0, 1, false);
  EXPECT_NEAR(vmoe_importance_loss(of_six).item<double>(), 0.166667, 1e-6);
  EXPECT_NEAR(vmoe_importance_loss(of_six, /*unbiased=*/true).item<double>(), 0.25, 1e-6);
}

// Each expert is preferred by the same number of tokens; then one by all: (E² / E - 1) = E - 1.
TEST(VmoeLoss, G15_BalanceIsZeroAndOneExpertForAllTheMost) {
  constexpr int64_t kExperts = 6;
  const at::Tensor preferred = 3 * torch::eye(kExperts, torch::kDouble).repeat({4, 1});
  EXPECT_LT(vmoe_importance_loss(route_softmax_topk(preferred, {}, 0, 1, false)).item<double>(), 1e-10);
  at::Tensor one = torch::full({24, kExperts}, -1e3, torch::kDouble);
  one.select(1, 2).zero_();
  const Routing to_one = route_softmax_topk(one, {}, 0, 1, false);
  EXPECT_NEAR(vmoe_importance_loss(to_one).item<double>(), kExperts - 1, 1e-9);
  EXPECT_NEAR(vmoe_importance_loss(to_one, /*unbiased=*/true).item<double>(), kExperts, 1e-9);
}

// The checks of Mobile V-MoE's end-to-end baselines.
TEST(VmoeLoss, M19_ReproducesThePerImageExample) {
  const at::Tensor gates = torch::tensor({{0.5, 0.5}, {0.9, 0.1}}, torch::kDouble);
  EXPECT_NEAR(vmoe_importance_loss(route_softmax_topk(gates.log(), {}, 0, 1, false)).item<double>(), 0.16, 1e-12);

  const at::Tensor clean = torch::tensor({{0.2, 0.}, {-0.1, 0.4}}, torch::kDouble);
  const at::Tensor noisy = torch::tensor({{0.3, -0.1}, {0.25, 0.1}}, torch::kDouble);
  const Routing r = route_softmax_topk(clean, (noisy - clean) / 0.5, 0.5, 1, false);
  EXPECT_TRUE(torch::allclose(vmoe_load_probability(r),
                              torch::tensor({{0.420740, 0.274253}, {0.241964, 0.617911}}, torch::kDouble), 0, 1e-6));
  EXPECT_NEAR(vmoe_load_loss(r).item<double>(), 0.0217785, 1e-7);
}

TEST(VmoeLoss, IsTheMeanOverGroups) {
  const at::Tensor clean = test::random_tensor({10, 4}, 1), epsilon = test::random_tensor({10, 4}, 2);
  const auto route = [&](int64_t first, int64_t last) {
    return route_softmax_topk(clean.slice(0, first, last), epsilon.slice(0, first, last), 0.25, 2, false);
  };
  Routing whole = route(0, 10);
  set_consecutive_groups(whole, 4);
  double importance = 0, load = 0;
  for (const auto& [first, last] : {std::pair<int64_t, int64_t>{0, 4}, {4, 8}, {8, 10}}) {
    importance += vmoe_importance_loss(route(first, last)).item<double>() / 3;
    load += vmoe_load_loss(route(first, last)).item<double>() / 3;
  }
  EXPECT_NEAR(vmoe_importance_loss(whole).item<double>(), importance, 1e-12);
  EXPECT_NEAR(vmoe_load_loss(whole).item<double>(), load, 1e-12);
}

TEST(VmoeLoss, WithoutNoiseThereIsNoLoadTerm) {
  const Routing routing = route_softmax_topk(test::example_logits(), {}, 0, 2, false);
  const std::vector<NamedLoss> losses = compute_losses(routing, vmoe_weights());
  ASSERT_EQ(losses.size(), 1u);
  EXPECT_EQ(losses[0].name, "vmoe_importance");
}

// Without noise worth mentioning the best expert has the probability 1, the second 1/2 (its logit is the threshold) and
// the others 0: sums 2 .5 1 1, of mean 1.125 and variance (.765625 + .390625 + .015625 + .015625) / 4. In fp32
// softplus(-200) is 0 and softplus(-95) so small that its inverse is infinite.
TEST(VmoeLoss, ANoiseScaleThatUnderflowsGivesFiniteLosses) {
  for (const float size : {-95.f, -200.f}) {
    const at::Tensor clean =
        torch::tensor({{3.f, 2.f, 1.f, 0.f}, {0.f, 1.f, 2.f, 3.f}, {3.f, 1.f, 2.f, 0.f}}).requires_grad_(true);
    const at::Tensor raw = torch::full({3, 4}, size).requires_grad_(true);
    const at::Tensor loss = vmoe_load_loss(route_noisy_topk(clean, noise_scale(raw, 0), torch::ones({3, 4}), 2));
    loss.backward();
    EXPECT_NEAR(loss.item<double>(), 0.296875 / (1.125 * 1.125), 1e-6) << size;
    EXPECT_TRUE(torch::isfinite(clean.grad()).all().item<bool>()) << size;
    EXPECT_LT(raw.grad().abs().max().item<double>(), 1e-30) << size;  // of the noise in the threshold alone
  }
}

TEST(VmoeLoss, AnEmptyBatchHasZeroLosses) {
  const Routing routing = route_softmax_topk(torch::empty({0, 4}), torch::empty({0, 4}), 0.25, 2, false);
  for (const NamedLoss& loss : compute_losses(routing, vmoe_weights()))
    EXPECT_EQ(loss.value.item<double>(), 0) << loss.name;
}

}  // namespace sparsight::vmoe_losses_test
