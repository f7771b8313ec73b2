#include "sparsight/moe/routers/balanced_hierarchical.h"

#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "sparsight/moe/dispatch/rows.h"
#include "sparsight/moe/losses/balance.h"
#include "sparsight/moe/losses/importance.h"
#include "tests/moe/routers/token_batch.h"
#include "tests/moe/shazeer_example.h"
#include "tests/support/gradcheck.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::balanced_hierarchical_test {
namespace {

using test::dense_gates;
using test::near;
using test::table;

// 4 tokens, 4 groups of 2 experts. The groups' scores and thresholds are those of the worked example of strictly
// balanced gating (balanced_batchwise_test.cpp), so what groups take and with which gates is known from there:
//   training    M = 1110 1001 0101 0010   gates .444444 .333333 .222222 | .6875 .3125 | .6 .4 | 1
//   evaluation  M = 0110 1011 0111 0010   gates .6 .4 | .578947 .157895 .263158 | .5 .166667 .333333 | 1
at::Tensor group_scores() {
  return table({{.40, .30, .20, .10}, {.55, .05, .15, .25}, {.10, .45, .15, .30}, {.34, .26, .22, .18}});
}
// [G,N]: what a group's first expert scores for each token; its second expert 1 - that.
at::Tensor first_expert_scores() {
  return table({{.6, .3, .5, .5}, {.2, .5, .5, .5}, {.9, .5, .3, .9}, {.5, .4, .45, .5}});
}

struct Example {
  at::Tensor primary, first;
  TwoLevelThresholds thresholds;

  explicit Example(at::ScalarType type)
      : primary(group_scores().log().to(type)),
        first(first_expert_scores().to(type)),
        thresholds{torch::tensor({.45, .28, .12, .20}, torch::kDouble).to(type), torch::full({8}, .5, type)} {}

  GroupLogits secondary() const {
    return [this](int64_t group, const at::Tensor& token) {
      const at::Tensor a = first[group].index_select(0, token);
      return at::stack({a.log(), (1 - a).log()}, 1);
    };
  }
  Routing train() const { return route_balanced_hierarchical(primary, secondary(), thresholds, {2, 1}, {}); }
  Routing evaluate(TwoLevelChoices best = {0, 0}) const {
    return route_hierarchical_above_threshold(primary, secondary(), thresholds, {}, best);
  }
};

class Identity : public Experts {
 public:
  at::Tensor compute(const at::Tensor& rows, const at::Tensor&, const RowContext&) override { return rows; }
};

// Random logits for 4 groups of 3 experts.
struct Random {
  at::Tensor primary = test::random_tensor({24, 4}, 1), all = test::random_tensor({24, 12}, 2);
  TwoLevelThresholds thresholds{torch::full({4}, .25, torch::kDouble), torch::full({12}, 1. / 3, torch::kDouble)};
  GroupLogits secondary() const {
    return
        [this](int64_t group, const at::Tensor& token) { return all.index_select(0, token).narrow(1, group * 3, 3); };
  }
  Routing train(TwoLevelChoices choices = {2, 1}) const {
    return route_balanced_hierarchical(primary, secondary(), thresholds, choices, {});
  }
};

}  // namespace

class BalancedHierarchical : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  double tol() const { return test::example_tolerance(GetParam()); }
};

// Groups took tokens 01, 02, 03, 12, and each expert the better of its group's two:
//   group 0  .6 .3 / .4 .7    token 0 to expert 0, token 1 to expert 1
//   group 1  .2 .5 / .8 .5    token 2 to expert 2, token 0 to expert 3
//   group 2  .9 .9 / .1 .1    ties: token 0 to both experts, with gates .9 and .1; token 3 is dropped
//   group 3  .4 .45 / .6 .55  token 2 to expert 6, token 1 to expert 7
TEST_P(BalancedHierarchical, ByHandInTraining) {
  const Routing r = Example(GetParam()).train();
  EXPECT_TRUE(near(dense_gates(r),
                   table({{.444444, 0, 0, .333333, .2, .022222, 0, 0},
                          {0, .6875, 0, 0, 0, 0, 0, .3125},
                          {0, 0, .6, 0, 0, 0, .4, 0},
                          {0, 0, 0, 0, 0, 0, 0, 0}}),
                   tol()));
  EXPECT_TRUE(torch::equal(r.chosen_count, torch::ones({8}, torch::kLong)));
  EXPECT_TRUE(
      near(importance(r), torch::tensor({.444444, .6875, .6, .333333, .2, .022222, .4, .3125}, torch::kDouble), tol()));
  EXPECT_TRUE(torch::equal(r.groups->chosen_count, torch::full({4}, 2, torch::kLong)));
  EXPECT_EQ(r.gate.scalar_type(), GetParam());
}

// Thresholds of .5 for all experts: .5 does not exceed them.
TEST_P(BalancedHierarchical, ByHandInEvaluation) {
  const Routing r = Example(GetParam()).evaluate();
  EXPECT_TRUE(near(dense_gates(r),
                   table({{0, 0, 0, .6, .4, 0, 0, 0},
                          {0, .578947, 0, 0, 0, 0, 0, .263158},
                          {0, 0, 0, 0, 0, .166667, 0, .333333},
                          {0, 0, 0, 0, 1, 0, 0, 0}}),
                   tol()));
}

// The best group of the tokens is 0 0 1 0, the best expert there, by .6 .7 | .5 .5 | .5 .5 with ties to the lower one,
// 0 1 2 0. With the two best groups (4/7 3/7 | .6875 .3125 | .6 .4 | 17/30 13/30 of groups 01, 03, 13, 01) and
// thresholds of .5 for experts, tokens 2 and 3 pass nowhere in groups 1 and 0 1.
TEST_P(BalancedHierarchical, EvaluationMayTakeTheBestOfEitherLevelInstead) {
  EXPECT_TRUE(near(
      dense_gates(Example(GetParam()).evaluate({1, 1})),
      table({{1, 0, 0, 0, 0, 0, 0, 0}, {0, 1, 0, 0, 0, 0, 0, 0}, {0, 0, 1, 0, 0, 0, 0, 0}, {1, 0, 0, 0, 0, 0, 0, 0}}),
      tol()));
  EXPECT_TRUE(near(dense_gates(Example(GetParam()).evaluate({2, 0})),
                   table({{4. / 7, 0, 0, 3. / 7, 0, 0, 0, 0},
                          {0, .6875, 0, 0, 0, 0, 0, .3125},
                          {0, 0, 0, 0, 0, 0, 0, .4},
                          {0, 0, 0, 0, 0, 0, 0, 0}}),
                   tol()));
}

// Groups: 0.11, as in their example. Experts: what passes and was not taken is token 3 at expert 4 (.9 - .5) and token
// 2 at expert 7 (.55 - .5); what was taken and does not pass is token 2 at expert 2 (.5 - .5), token 0 at expert 5
// (.5 - .1) and token 2 at expert 6 (.5 - .45).
TEST_P(BalancedHierarchical, TheThresholdLossIsTheSumOfBothLevels) {
  Example e(GetParam());
  for (at::Tensor* t : {&e.thresholds.of_groups, &e.thresholds.of_experts}) t->requires_grad_(true);
  const at::Tensor loss = threshold_loss(e.train());
  EXPECT_TRUE(near(loss, .11 + .4 + .05 + 0 + .4 + .05, 2 * tol()));
  loss.backward();
  EXPECT_TRUE(near(e.thresholds.of_groups.grad(), torch::tensor({1., 0., -2., 0.}, torch::kDouble), 0));
  EXPECT_TRUE(
      near(e.thresholds.of_experts.grad(), torch::tensor({0., 0., 1., 0., -1., 1., 1., -1.}, torch::kDouble), 0));
}

INSTANTIATE_TEST_SUITE_P(Types, BalancedHierarchical, ::testing::Values(torch::kFloat, torch::kDouble));

TEST(BalancedHierarchicalRouter, EveryGroupAndEveryExpertGetsExactlyItsRows) {
  for (const int64_t k_groups : {1, 2, 3, 4})
    for (const int64_t k : {1, 2, 3}) {
      const Routing r = Random().train({k_groups, k});
      EXPECT_TRUE(torch::equal(r.groups->chosen_count, torch::full({4}, 6 * k_groups, torch::kLong)));
      EXPECT_TRUE(torch::equal(r.chosen_count, torch::full({12}, 2 * k_groups * k, torch::kLong)));
      EXPECT_EQ(std::get<0>(at::_unique(r.token * 12 + r.expert)).size(0), r.token.size(0));
      // No token goes to an expert of a group that did not take it.
      const at::Tensor pairs = r.groups->token * 4 + r.groups->expert;
      EXPECT_TRUE(at::isin(r.token * 4 + r.expert.floor_divide(3), pairs).all().item<bool>());
    }
}

TEST(BalancedHierarchicalRouter, GatesHaveTheRightGradients) {
  Random e;
  const at::Tensor upstream = test::random_tensor({48}, 4);
  EXPECT_LT(test::gradient_error([&] { return (e.train().gate * upstream).sum(); }, {e.primary, e.all}), 1e-8);
  const auto loss = [&] { return threshold_loss(e.train(), /*score_gradient=*/true); };
  EXPECT_LT(test::gradient_error(loss, {e.primary, e.all}), 1e-8);
}

TEST(BalancedHierarchicalRouter, ThresholdsOfBothLevelsReachTheMasksOfAFixedBatch) {
  BalancedHierarchicalOptions options;
  options.groups = 4;
  options.rate = 0.1;
  options.rate_decay_steps = 100;
  BalancedHierarchicalRouter router(options, {3, 12});
  router.to(torch::kDouble);
  initialize(router, 1);
  const Random e;
  EXPECT_TRUE(near(router.thresholds.of_groups, e.thresholds.of_groups, 1e-7));
  EXPECT_TRUE(near(router.thresholds.of_experts, e.thresholds.of_experts, 1e-7));
  const Routing r = e.train();
  int64_t step = 0;
  const auto agree = [&] {
    const Routing above = route_hierarchical_above_threshold(e.primary, e.secondary(), router.thresholds, {});
    return torch::equal(dense_gates(above) > 0, dense_gates(r) > 0);
  };
  for (; step < 20000 && !agree(); ++step) router.post_step_update({r});
  EXPECT_GT(step, 0);
  EXPECT_LT(step, 20000);
  EXPECT_EQ(router.steps.item<int64_t>(), step);
}

TEST(BalancedHierarchicalRouter, AStepMovesThresholdsByTheSurplusOfAllItsBatches) {
  BalancedHierarchicalOptions options;
  options.groups = 4;
  BalancedHierarchicalRouter router(options, {3, 8});
  const Example e(torch::kFloat);
  router.thresholds.of_groups.copy_(e.thresholds.of_groups);
  router.thresholds.of_experts.copy_(e.thresholds.of_experts);
  const Routing r = detached(e.train());
  router.post_step_update({r, r});
  const double groups = 0.01 / 4, experts = 0.01 / 2;  // rate / number of scores in a softmax
  EXPECT_TRUE(near(router.thresholds.of_groups,
                   torch::tensor({.45 - groups / 2, .28, .12 + groups, .20}, torch::kDouble), 1e-7));
  // passed 1 1 0 1 2 0 0 2 where one row is wanted
  EXPECT_TRUE(near(router.thresholds.of_experts,
                   torch::tensor({0., 0., -1., 0., 1., -1., -1., 1.}, torch::kDouble) * experts + .5, 1e-7));
  EXPECT_THROW(router.post_step_update({Routing()}), Error);  // of one level
}

TEST(BalancedHierarchicalRouter, PaddingAndATokenThatNobodyTakesGiveZero) {
  const Example e(torch::kDouble);
  Identity experts;
  const at::Tensor x = test::random_tensor({4, 3}, 4).requires_grad_(true);
  const at::Tensor y = experts.apply_routing(x, e.train());
  EXPECT_TRUE((y[3] == 0).all().item<bool>());
  y.sum().backward();
  EXPECT_TRUE(torch::isfinite(x.grad()).all().item<bool>());

  BalancedHierarchicalRouter router({}, {3, 4});  // 2 groups of 2 experts, one group per token
  initialize(router, 1);
  RouterInput input = test::token_batch(test::random_tensor({6, 3}, 5, torch::kFloat));
  input.context.valid = torch::tensor({true, false, true, true, false, true});
  const Routing r = router.route(input);  // 4 tokens: 2 for each group, and, with k = 2, for each expert
  EXPECT_TRUE(torch::equal(r.chosen_count, torch::full({4}, 2, torch::kLong)));
  EXPECT_TRUE(input.context.valid.index_select(0, r.token).all().item<bool>());
  EXPECT_TRUE(torch::equal(r.groups->valid, input.context.valid));
}

TEST(BalancedHierarchicalRouter, WhatDoesNotFitIsAnError) {
  const auto made = [](int64_t groups, int64_t k_groups, int64_t k) {
    BalancedHierarchicalOptions options;
    options.groups = groups;
    options.k_groups = k_groups;
    options.k = k;
    return BalancedHierarchicalRouter(options, {5, 8});
  };
  EXPECT_THROW(made(3, 1, 1), UsageError);
  EXPECT_THROW(made(2, 3, 1), UsageError);
  EXPECT_THROW(made(4, 1, 3), UsageError);
  Random odd;
  odd.primary = odd.primary.slice(0, 0, 22);  // 22 tokens over 4 groups
  EXPECT_THROW(odd.train({1, 1}), UsageError);
  odd.primary = odd.primary.slice(0, 0, 20);  // 5 tokens of a group over 3 experts
  EXPECT_THROW(odd.train({1, 1}), UsageError);
}

}  // namespace sparsight::balanced_hierarchical_test
