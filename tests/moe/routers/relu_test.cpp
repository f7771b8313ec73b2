#include "sparsight/moe/routers/relu.h"

#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "tests/moe/routers/token_batch.h"
#include "tests/moe/shazeer_example.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::relu_test {
namespace {

using test::near;
using test::table;

at::Tensor example() { return table({{.5, -1, 2, 0}, {-1, -2, -3, -4}, {1, 3, -1, 2}}); }

// A router whose logits are its tokens.
std::shared_ptr<ReluRouter> identity(const ReluOptions& options) {
  auto router = std::make_shared<ReluRouter>(options, RouterShape{4, 4});
  const torch::NoGradGuard no_grad;
  router->weight.copy_(torch::eye(4));
  router->to(torch::kDouble);
  return router;
}

double find_metric(const Routing& routing, const std::string& metric) {
  for (const RoutingMetric& m : routing.metrics)
    if (m.name == metric) return m.value;
  return -1;
}

}  // namespace

TEST(Relu, ChoosesTheExpertsWithPositiveLogits) {
  for (const auto type : {torch::kFloat, torch::kDouble}) {
    const Routing r = route_relu(example().to(type));
    EXPECT_TRUE(torch::equal(r.token, torch::tensor({0, 0, 2, 2, 2}, torch::kLong)));
    EXPECT_TRUE(torch::equal(r.expert, torch::tensor({2, 0, 1, 3, 0}, torch::kLong)));
    EXPECT_TRUE(torch::equal(r.rank, torch::tensor({0, 1, 0, 1, 2}, torch::kLong)));
    EXPECT_TRUE(near(r.gate, torch::tensor({2., .5, 3., 2., 1.}, torch::kDouble), 1e-7));
    EXPECT_EQ(r.per_token, 4);
    EXPECT_TRUE(r.varying);
  }
  EXPECT_EQ(route_relu(-example().abs()).token.size(0), 0);  // no token goes anywhere
  EXPECT_EQ(route_relu(example().narrow(0, 0, 0)).token.size(0), 0);
}

// The sums of gates are 2.5, 0 and 6. Tokens of each expert: 2 1 1 1, so with k = 2 f = 4 / (2 * 3) * (2 1 1 1) = 4/3
// 2/3 2/3 2/3; token 0 has .5 * 4/3 + 2 * 2/3 = 2, token 2 has 1 * 4/3 + 3 * 2/3 + 2 * 2/3 = 14/3.
TEST(Relu, TheL1LossWeighsExpertsByTheirShare) {
  const Routing r = route_relu(example());
  EXPECT_NEAR(relu_l1(r, 2, /*balance=*/false).item<double>(), 8.5 / 3, 1e-12);
  EXPECT_NEAR(relu_l1(r, 2, /*balance=*/true).item<double>(), 20. / 9, 1e-12);
  EXPECT_NEAR(relu_l1(r, 1, /*balance=*/true).item<double>(), 40. / 9, 1e-12);
}

TEST(Relu, PaddingCountsInNeitherLossNorSparsity) {
  auto router = identity({.mean_k = 2});
  RouterInput padded = test::token_batch(example());
  padded.context.valid = torch::tensor({true, false, false});
  const Routing r = router->route(padded);
  // Token 0 alone: f = 4 / 2 * (1 0 1 0).
  EXPECT_NEAR(relu_l1(r, 2, true).item<double>(), 2 * 2.5, 1e-12);
  EXPECT_NEAR(find_metric(r, "sparsity"), .5, 1e-12);
}

TEST(Relu, GatesAndLossHaveTheGradientOfTheLogits) {
  const at::Tensor clean = test::random_tensor({5, 4}, 3), upstream = test::random_tensor({5, 4}, 4);
  const auto gates = [&] { return (test::dense_gates(route_relu(clean)) * upstream).sum(); };
  EXPECT_LT(test::gradient_error(gates, {clean}, 1e-6), 1e-7);
  for (const bool balance : {true, false}) {
    const auto loss = [&] { return relu_l1(route_relu(clean), 2, balance); };
    EXPECT_LT(test::gradient_error(loss, {clean}, 1e-6), 1e-7) << balance;
  }
}

// 5 of 12 gates are positive: a sparsity of 7/12. Above 1 - 2/4 the coefficient falls, below 1 - 1/4 it rises.
TEST(Relu, TheCoefficientFollowsTheSparsity) {
  auto many = identity({.mean_k = 2}), few = identity({.mean_k = 1});
  const Routing r = many->route(test::token_batch(example()));
  EXPECT_NEAR(find_metric(r, "sparsity"), 7. / 12, 1e-12);
  EXPECT_NEAR(find_metric(r, "l1_coefficient"), 1e-8, 1e-15);
  many->post_step_update({r, r});
  few->post_step_update({r, r});
  EXPECT_NEAR(many->l1_coefficient.item<double>(), 1e-8 / 1.2, 1e-15);
  EXPECT_NEAR(few->l1_coefficient.item<double>(), 1.2e-8, 1e-15);
  // Two batches of one step count together: 5 and 7 of 24 gates, exactly 1 - 2/4.
  const Routing dense = many->route(test::token_batch(table({{1, 1, 1, 1}, {1, 1, 1, -1}, {-1, -1, -1, -1}})));
  many->post_step_update({r, dense});
  EXPECT_NEAR(many->l1_coefficient.item<double>(), 1e-8 / 1.2, 1e-15);
  many->post_step_update({});
  EXPECT_NEAR(many->l1_coefficient.item<double>(), 1e-8 / 1.2, 1e-15);
  EXPECT_EQ(adapted_coefficient(torch::full({}, 9e5), 0, .5, 1.2).item<double>(), 1e6);
}

TEST(Relu, ItsOwnLossIsTheCoefficientTimesTheL1) {
  auto router = identity({.mean_k = 2, .coefficient = .25});
  const auto losses = router->own_losses();
  ASSERT_EQ(losses.size(), 1);
  EXPECT_EQ(losses[0].name, "relu_l1");
  EXPECT_NEAR(losses[0].weight * losses[0].value(router->route(test::token_batch(example()))).item<double>(),
              .25 * 20. / 9, 1e-12);
  auto without = identity({.coefficient = 0});
  EXPECT_TRUE(without->own_losses().empty());
  EXPECT_FALSE(without->needs_post_step_update());
}

TEST(Relu, MoreThanAllExpertsAreRefused) {
  EXPECT_EQ(testing::error_text<UsageError>([] {
              ReluRouter({.mean_k = 5}, {3, 4});
            }),
            "[router] mean_k = 5 is above the 4 experts; lower it");
}

}  // namespace sparsight::relu_test
