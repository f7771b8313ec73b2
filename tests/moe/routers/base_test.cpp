#include "sparsight/moe/routers/base.h"

#include <gtest/gtest.h>

#include "tests/moe/routers/token_batch.h"
#include "tests/moe/shazeer_example.h"
#include "tests/support/gradcheck.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::base_test {

class Base : public ::testing::TestWithParam<at::ScalarType> {};

// Both tokens prefer expert 0; the sum is largest if the second one gets it. Gates are sigmoids of 3 and 4, or of the
// largest logits 5 and 4 in evaluation.
TEST_P(Base, BalancesInTrainingAndIsGreedyInEvaluation) {
  const double tol = test::example_tolerance(GetParam());
  const at::Tensor clean = test::table({{5, 3}, {4, 1}}).to(GetParam());
  const Routing r = route_base(clean, {});
  EXPECT_TRUE(torch::equal(r.expert, torch::tensor({1, 0}, torch::kLong)));
  EXPECT_TRUE(test::near(r.gate, torch::tensor({0.952574, 0.982014}, torch::kDouble), tol));
  EXPECT_EQ(r.per_token, 1);
  EXPECT_EQ(r.gate.scalar_type(), GetParam());
  const Routing greedy = route_base_greedy(clean);
  EXPECT_TRUE(torch::equal(greedy.expert, torch::tensor({0, 0}, torch::kLong)));
  EXPECT_TRUE(test::near(greedy.gate, torch::tensor({0.993307, 0.982014}, torch::kDouble), tol));
}

INSTANTIATE_TEST_SUITE_P(Types, Base, ::testing::Values(torch::kFloat, torch::kDouble));

TEST(BaseRouter, EveryExpertGetsTheSameNumberOfTokensWhileTraining) {
  BaseRouter router({}, {6, 8});
  initialize(router, 1);
  const at::Tensor x = test::random_tensor({160, 6}, 2, torch::kFloat);
  EXPECT_TRUE(torch::equal(router.route(test::token_batch(x)).chosen_count, torch::full({8}, 20, torch::kLong)));
  const Routing greedy = router.route(test::evaluated(test::token_batch(x)));
  EXPECT_TRUE(torch::equal(greedy.expert, greedy.clean_logits.argmax(1)));
}

TEST(BaseRouter, PaddingTakesNoSlot) {
  const at::Tensor clean = test::random_tensor({12, 4}, 3);
  const at::Tensor valid = torch::arange(12, torch::kLong).remainder(3) < 2;  // 8 tokens
  const at::Tensor rows = torch::nonzero(valid).squeeze(1);
  EXPECT_TRUE(torch::equal(route_base(clean, valid).expert.index_select(0, rows),
                           route_base(clean.index_select(0, rows), {}).expert));
}

TEST(BaseRouter, GatesHaveTheRightGradients) {
  at::Tensor clean = test::random_tensor({6, 3}, 1);
  const at::Tensor upstream = test::random_tensor({6}, 2);
  const auto loss = [&] { return (route_base(clean, {}).gate * upstream).sum(); };
  EXPECT_LT(test::gradient_error(loss, {clean}), 1e-8);
}

}  // namespace sparsight::base_test
