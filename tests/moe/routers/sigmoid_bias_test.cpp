#include "sparsight/moe/routers/sigmoid_bias.h"

#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "tests/moe/routers/token_batch.h"
#include "tests/moe/shazeer_example.h"
#include "tests/support/gradcheck.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"
#include "tests/support/typed_gradcheck.h"

namespace sparsight::sigmoid_bias_test {
namespace {

using test::near;
using test::table;

at::Tensor example_bias() { return torch::tensor({0.05, -0.10, 0.00, 0.30}, torch::kDouble); }

}  // namespace

class SigmoidBias : public ::testing::TestWithParam<at::ScalarType> {};

TEST_P(SigmoidBias, S22_ReproducesT14) {
  const double tol = test::example_tolerance(GetParam());
  const at::Tensor clean = test::example_logits().to(GetParam()), bias = example_bias().to(GetParam());
  const Routing r = route_sigmoid_bias(clean, bias, 2, 1, {});
  EXPECT_TRUE(near(r.scores,
                   table({{0.721115, 0.348645, 0.431680, 0.574443},
                          {0.278885, 0.610639, 0.838891, 0.342990},
                          {0.360084, 0.716060, 0.506250, 0.481259}}),
                   tol));
  EXPECT_TRUE(torch::equal(r.expert, torch::tensor({3, 0, 2, 3, 3, 1}, torch::kLong)));
  EXPECT_TRUE(near(test::dense_gates(r),
                   table({{0.556606, 0, 0, 0.443394}, {0, 0, 0.709793, 0.290207}, {0, 0.598053, 0, 0.401947}}), tol));
  EXPECT_TRUE(torch::equal(r.chosen_count, torch::tensor({1, 1, 1, 3}, torch::kLong)));
  EXPECT_TRUE(near(balanced_bias(bias, r.chosen_count, 0.001),
                   torch::tensor({0.051, -0.099, 0.001, 0.299}, torch::kDouble), 1e-7));
  const Routing without = route_sigmoid_bias(clean, torch::zeros({4}, GetParam()), 2, 1, {});
  EXPECT_TRUE(torch::equal(without.expert, torch::tensor({0, 3, 2, 1, 1, 2}, torch::kLong)));
  // The specification prints no gradients: central differences give them.
  const auto loss = [&](const std::vector<at::Tensor>& leaf) {
    const at::Tensor gate = route_sigmoid_bias(leaf[0], bias.to(leaf[0].scalar_type()), 2, 1, {}).gate;
    return (gate * test::random_tensor({6}, 3, gate.scalar_type())).sum();
  };
  EXPECT_LT(test::gradient_error_in(GetParam(), loss, {test::example_logits()}), tol);
}

TEST_P(SigmoidBias, S22_TheBiasHasNoGradientAndDoesNotEnterGates) {
  const at::Tensor clean = test::example_logits().to(GetParam()).requires_grad_(true);
  const at::Tensor bias = example_bias().to(GetParam()).requires_grad_(true);
  const Routing r = route_sigmoid_bias(clean, bias, 2, 1, {});
  r.gate.square().sum().backward();
  EXPECT_FALSE(bias.grad().defined());
  EXPECT_GT(clean.grad().abs().max().item<double>(), 0);
  // The same selection by another bias: the same gates.
  EXPECT_TRUE(torch::equal(route_sigmoid_bias(clean, bias.detach() + 7, 2, 1, {}).gate, r.gate));
}

TEST(SigmoidBiasRouter, AnExpertWithTheMeanCountKeepsItsBias) {
  EXPECT_TRUE(near(balanced_bias(torch::zeros({3}, torch::kDouble), torch::tensor({2, 3, 4}, torch::kLong), 0.5),
                   torch::tensor({0.5, 0., -0.5}, torch::kDouble), 0));
}

TEST(SigmoidBiasRouter, GatesSumToTheScaleAndHaveTheRightGradients) {
  at::Tensor clean = test::random_tensor({5, 6}, 1);
  const at::Tensor bias = test::random_tensor({6}, 2), upstream = test::random_tensor({10}, 3);
  const Routing r = route_sigmoid_bias(clean, bias, 2, 2.5, {});
  EXPECT_TRUE(near(r.gate.view({5, 2}).sum(1), torch::full({5}, 2.5), 1e-12));
  const auto loss = [&] { return (route_sigmoid_bias(clean, bias, 2, 2.5, {}).gate * upstream).sum(); };
  EXPECT_LT(test::gradient_error(loss, {clean}), 1e-8);
}

TEST(SigmoidBiasRouter, ATokenStaysInItsBestGroups) {
  // Two groups of three experts, k = 2 in one group: scores of a group are sums of its two best.
  // Logits whose sigmoids rank as .9 .1 .1 | .6 .6 .5: sums 1.0 against 1.2, so expert 0, the best of all, is out.
  const at::Tensor q = torch::tensor({{.9, .1, .1, .6, .6, .5}}, torch::kDouble);
  const Routing r = route_sigmoid_bias(q.logit(), torch::zeros({6}, torch::kDouble), 2, 1, {2, 1});
  EXPECT_TRUE(torch::equal(r.expert, torch::tensor({3, 4}, torch::kLong)));
}

TEST_P(SigmoidBias, S22_AfterAStepTheBiasFollowsTheCountsOfAllItsBatches) {
  SigmoidBiasOptions options;
  options.freeze_after = 1;
  SigmoidBiasRouter router(options, {3, 4});
  router.to(GetParam());
  const at::Tensor clean = test::example_logits().to(GetParam());
  Routing a = route_sigmoid_bias(clean, example_bias().to(GetParam()), 2, 1, {}), b = a;  // counts 1 1 1 3
  b.chosen_count = torch::tensor({0, 3, 2, 1}, torch::kLong);                             // together 1 4 3 4
  router.post_step_update({a, b});
  const at::Tensor moved = torch::tensor({0.001, -0.001, 0., -0.001}, torch::kDouble);
  EXPECT_TRUE(near(router.bias, moved, 1e-9));
  router.post_step_update({a, b});  // frozen
  EXPECT_TRUE(near(router.bias, moved, 1e-9));
}

// The bias moves by counts: no gradient.
TEST_P(SigmoidBias, S23_BalancesAStreamOfTokens) {
  // 8 experts with logits evenly spaced from -0.5 to 0.5 plus N(0, 0.3²), 512 tokens and k = 2 per step, rate 0.001.
  const at::Tensor offset = torch::linspace(-0.5, 0.5, 8, torch::kDouble);
  at::Tensor bias = torch::zeros({8}, GetParam());
  double start = 0, end = 0;
  for (int64_t step = 0; step <= 2000; ++step) {
    const at::Tensor logits = offset + 0.3 * test::random_tensor({512, 8}, 1000 + static_cast<uint64_t>(step));
    const at::Tensor count = route_sigmoid_bias(logits.to(GetParam()), bias, 2, 1, {}).chosen_count;
    const double ratio = count.max().item<double>() / (512 * 2 / 8.0);
    if (step == 0) start = ratio;
    if (step >= 1900) end += ratio / 101;
    bias = balanced_bias(bias, count, 0.001);
  }
  EXPECT_GT(start, 2.5);
  EXPECT_LT(start, 3.5);
  EXPECT_LT(end, 1.2);
  RecordProperty("max_over_mean_at_the_end", std::to_string(end));
}

INSTANTIATE_TEST_SUITE_P(Types, SigmoidBias, ::testing::Values(torch::kFloat, torch::kDouble));

TEST(SigmoidBiasRouter, GroupsThatDoNotFitAreErrors) {
  const auto make = [](int64_t experts, int64_t k, int64_t groups, int64_t kept) {
    SigmoidBiasOptions options;
    options.k = k;
    options.groups = groups;
    options.kept_groups = kept;
    SigmoidBiasRouter(options, {4, experts});
  };
  make(8, 4, 4, 2);
  EXPECT_THROW(make(8, 9, 1, 1), UsageError);
  EXPECT_THROW(make(8, 2, 3, 1), UsageError);  // 3 does not divide 8
  EXPECT_THROW(make(8, 2, 4, 5), UsageError);
  EXPECT_THROW(make(8, 3, 4, 2), UsageError);  // 3 is no multiple of 2
  EXPECT_THROW(make(8, 6, 4, 2), UsageError);  // only 4 experts in reach
}

}  // namespace sparsight::sigmoid_bias_test
