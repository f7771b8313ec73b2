#include "sparsight/moe/routers/balanced_batchwise.h"

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
#include "tests/support/typed_gradcheck.h"

namespace sparsight::balanced_batchwise_test {
namespace {

using test::dense_gates;
using test::near;
using test::table;

// The worked example: 4 tokens, 4 experts, k = 2, so 2 rows for each expert. Scores are given directly.
at::Tensor example_scores() {
  return table({{.40, .30, .20, .10}, {.55, .05, .15, .25}, {.10, .45, .15, .30}, {.34, .26, .22, .18}});
}
at::Tensor example_threshold() { return torch::tensor({.45, .28, .12, .20}, torch::kDouble); }

// [N,E] 0/1: what was chosen.
at::Tensor mask(const Routing& r) {
  return torch::zeros({r.tokens, r.experts}, torch::kDouble)
      .index_put({r.token, r.expert}, torch::ones(r.token.sizes(), torch::kDouble));
}

// Identity experts.
class Identity : public Experts {
 public:
  at::Tensor compute(const at::Tensor& rows, const at::Tensor&, const RowContext&) override { return rows; }
};

}  // namespace

class BalancedBatchwise : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  double tol() const { return test::example_tolerance(GetParam()); }
  at::Tensor clean() const { return example_scores().log().to(GetParam()); }
  at::Tensor threshold() const { return example_threshold().to(GetParam()); }
};

TEST_P(BalancedBatchwise, S16_ReproducesT11InTraining) {
  const Routing r = route_balanced_batchwise(clean(), threshold(), 2, {});
  EXPECT_TRUE(near(r.scores, example_scores(), tol()));
  EXPECT_TRUE(torch::equal(mask(r), table({{1, 1, 1, 0}, {1, 0, 0, 1}, {0, 1, 0, 1}, {0, 0, 1, 0}})));
  EXPECT_TRUE(near(dense_gates(r),
                   table({{0.444444, 0.333333, 0.222222, 0}, {0.6875, 0, 0, 0.3125}, {0, 0.6, 0, 0.4}, {0, 0, 1, 0}}),
                   tol()));
  EXPECT_TRUE(torch::equal(r.chosen_count, torch::full({4}, 2, torch::kLong)));
  EXPECT_TRUE(near(importance(r), torch::tensor({1.131944, 0.933333, 1.222222, 0.712500}, torch::kDouble), tol()));
  EXPECT_TRUE(near(importance_loss(r), 0.038473, tol()));
  EXPECT_EQ(r.gate.scalar_type(), GetParam());
}

// The masks are constants of the backward pass. The specification prints no gradients: central differences give them.
TEST_P(BalancedBatchwise, S16_GradientsOfT11AgreeWithCentralDifferences) {
  const auto typed_threshold = [](const at::Tensor& like) { return example_threshold().to(like.scalar_type()); };
  const auto compute_loss =
      [](const Routing& r) {  // of dense gates: equal scores may be swapped in the list of choices
        return importance_loss(r) + (dense_gates(r) * test::random_tensor({4, 4}, 3, r.gate.scalar_type())).sum();
      };
  const auto train = [&](const std::vector<at::Tensor>& leaf) {
    return compute_loss(route_balanced_batchwise(leaf[0], typed_threshold(leaf[0]), 2, {}));
  };
  const auto evaluate = [&](const std::vector<at::Tensor>& leaf) {
    return compute_loss(route_above_threshold(leaf[0], typed_threshold(leaf[0]), {}));
  };
  EXPECT_LT(test::gradient_error_in(GetParam(), train, {example_scores().log()}), tol());
  EXPECT_LT(test::gradient_error_in(GetParam(), evaluate, {example_scores().log()}), tol());
}

TEST_P(BalancedBatchwise, S16_ReproducesT11InEvaluation) {
  const Routing r = route_above_threshold(clean(), threshold(), {});
  EXPECT_TRUE(torch::equal(mask(r), table({{0, 1, 1, 0}, {1, 0, 1, 1}, {0, 1, 1, 1}, {0, 0, 1, 0}})));
  EXPECT_TRUE(near(
      dense_gates(r),
      table({{0, 0.6, 0.4, 0}, {0.578947, 0, 0.157895, 0.263158}, {0, 0.5, 0.166667, 0.333333}, {0, 0, 1, 0}}), tol()));
}

// The mask of each row's two largest scores: .40 .30 | .55 .25 | .45 .30 | .34 .26, divided by their sums.
TEST_P(BalancedBatchwise, EvaluationMayTakeEachTokensBestInstead) {
  const Routing r = route_best_experts(clean(), threshold(), 2);
  EXPECT_TRUE(near(
      dense_gates(r),
      table({{4. / 7, 3. / 7, 0, 0}, {0.6875, 0, 0, 0.3125}, {0, 0.6, 0, 0.4}, {17. / 30, 13. / 30, 0, 0}}), tol()));
  EXPECT_TRUE(near(r.scores, example_scores(), tol()));
  EXPECT_TRUE(torch::equal(r.threshold, threshold()));
}

TEST_P(BalancedBatchwise, S17_ReproducesTheThresholdLossOfT11) {
  const at::Tensor theta = threshold().requires_grad_(true);
  const at::Tensor loss = threshold_loss(route_balanced_batchwise(clean(), theta, 2, {}));
  loss.backward();
  EXPECT_TRUE(near(loss, 0.11, tol()));
  EXPECT_TRUE(near(theta.grad(), torch::tensor({1., 0., -2., 0.}, torch::kDouble), 0));
  // Thresholds between the second and the third score of each expert make the masks agree.
  const at::Tensor agreeing = torch::tensor({.35, .26, .16, .24}, torch::kDouble).to(GetParam());
  const Routing r = route_balanced_batchwise(clean(), agreeing, 2, {});
  if (GetParam() == torch::kDouble) {
    EXPECT_EQ(threshold_loss(r).item<double>(), 0);
  }
  EXPECT_TRUE(near(threshold_loss(r), 0, tol()));
}

// dL/dscore = M_th - M_bw of the example, where the switch lets it through.
TEST_P(BalancedBatchwise, S17_TheThresholdLossMayReachTheScores) {
  Routing r = route_balanced_batchwise(clean(), threshold(), 2, {});
  r.scores = r.scores.detach().requires_grad_(true);
  EXPECT_FALSE(threshold_loss(r).requires_grad());
  threshold_loss(r, /*score_gradient=*/true).backward();
  EXPECT_TRUE(near(r.scores.grad(), table({{-1, 0, 0, 0}, {0, 0, 1, 0}, {0, 0, 1, 0}, {0, 0, 0, 0}}), 0));
}

// Counts: no gradient.
TEST_P(BalancedBatchwise, S16_EveryExpertGetsExactlyItsRowsAndTiesGoToLowTokens) {
  for (int64_t k = 1; k <= 5; ++k) {
    const Routing r =
        route_balanced_batchwise(test::random_tensor({200, 5}, 1, GetParam()), torch::zeros({5}, GetParam()), k, {});
    EXPECT_TRUE(torch::equal(r.chosen_count, torch::full({5}, 40 * k, torch::kLong)));
    EXPECT_EQ(std::get<0>(at::_unique(r.token * 5 + r.expert)).size(0), 200 * k);
  }
  const Routing tied = route_balanced_batchwise(torch::zeros({4, 2}, GetParam()), torch::zeros({2}, GetParam()), 1, {});
  EXPECT_TRUE(torch::equal(tied.token, torch::tensor({0, 1, 0, 1}, torch::kLong)));
}

TEST(BalancedBatchwiseRouter, RowsThatAreNoWholeNumberAreAnError) {
  EXPECT_THROW(route_balanced_batchwise(torch::zeros({5, 4}), torch::zeros({4}), 2, {}), UsageError);
  // Padding does not count: 4 of 5 tokens do.
  const at::Tensor valid = torch::tensor({true, false, true, true, true});
  const Routing r = route_balanced_batchwise(torch::zeros({5, 4}), torch::zeros({4}), 1, valid);
  EXPECT_TRUE(torch::equal(r.token, torch::zeros({4}, torch::kLong)));
}

// The update is the descent of the loss whose gradient is pinned above; nothing is differentiated.
TEST_P(BalancedBatchwise, S17_ThresholdsReachTheBatchwiseMaskOfAFixedBatch) {
  BalancedBatchwiseOptions options;
  options.rate = 0.1;
  options.rate_decay_steps = 100;
  BalancedBatchwiseRouter router(options, {3, 4});
  router.to(GetParam());
  initialize(router, 1);
  EXPECT_TRUE(near(router.threshold, torch::full({4}, 0.25), 1e-7));
  const Routing r = route_balanced_batchwise(test::random_tensor({32, 4}, 2, GetParam()), router.threshold, 2, {});
  int64_t step = 0;
  for (; step < 20000; ++step) {
    if (torch::equal((r.scores > router.threshold).sum(0), r.chosen_count)) break;
    router.post_step_update({r});
  }
  EXPECT_GT(step, 0);
  EXPECT_LT(step, 20000);
  EXPECT_EQ(router.steps.item<int64_t>(), step);
  RecordProperty("steps", std::to_string(step));
  const Routing above = route_above_threshold(r.clean_logits, router.threshold, {});
  EXPECT_TRUE(torch::equal(mask(above), mask(r)));
  EXPECT_TRUE(near(dense_gates(above), dense_gates(r), GetParam() == torch::kDouble ? 1e-15 : 1e-7));
}

TEST(BalancedBatchwiseRouter, AStepMovesThresholdsByTheSurplusOfAllItsBatches) {
  // (passed - rows) / rows of one batch of the example: (1 - 2) / 2, 0, (4 - 2) / 2, 0.
  EXPECT_TRUE(near(moved_threshold(example_threshold(), torch::tensor({1, 2, 4, 2}), torch::full({4}, 2), 0.1),
                   torch::tensor({.40, .28, .22, .20}, torch::kDouble), 1e-12));
  BalancedBatchwiseRouter router({}, {3, 4});
  router.threshold.copy_(example_threshold());
  const Routing r = route_balanced_batchwise(example_scores().log().to(torch::kFloat), router.threshold, 2, {});
  router.post_step_update({r, r});
  const double rate = 0.01 / 4;
  EXPECT_TRUE(near(router.threshold, torch::tensor({.45 - rate / 2, .28, .12 + rate, .20}, torch::kDouble), 1e-7));
}

TEST_P(BalancedBatchwise, S18_ATokenThatNobodyTakesGivesZeroAndFiniteGradients) {
  at::Tensor clean = test::random_tensor({8, 4}, 3, GetParam());
  clean = at::cat({clean, torch::full({2, 4}, 0, GetParam())});
  clean = clean.detach().requires_grad_(true);
  // Two tokens of equal scores .25 stay below every threshold of .3.
  const Routing r = route_above_threshold(clean, torch::full({4}, 0.3, GetParam()), {});
  EXPECT_FALSE((r.token >= 8).any().item<bool>());
  const at::Tensor x = test::random_tensor({10, 3}, 4, GetParam()).requires_grad_(true);
  Identity experts;
  const at::Tensor y = experts.apply_routing(x, r);
  EXPECT_TRUE((y.slice(0, 8) == 0).all().item<bool>());
  (y * test::random_tensor({10, 3}, 5, GetParam())).sum().backward();
  EXPECT_TRUE(torch::isfinite(clean.grad()).all().item<bool>() && torch::isfinite(x.grad()).all().item<bool>());
  EXPECT_TRUE((x.grad().slice(0, 8) == 0).all().item<bool>());
  // No token at all.
  const Routing none = route_above_threshold(clean, torch::full({4}, 1.0, GetParam()), {});
  EXPECT_EQ(none.token.size(0), 0);
  const at::Tensor nothing = experts.apply_routing(x, none);
  EXPECT_TRUE((nothing == 0).all().item<bool>());
  x.mutable_grad() = at::Tensor();
  nothing.sum().backward();
  EXPECT_TRUE((x.grad() == 0).all().item<bool>());
}

// With k = 1 every expert has one row of the example, its largest score: .55 of token 1, .45 and .30 of token 2, .22 of
// token 3. Experts E_i(x) = (i+1) x, tokens 1 2 3 4, and the sum of the output: token 2 has the gates .6 and .4 of
// experts 1 and 3, so that its output is (.6 * 2 + .4 * 4) * 3 = 2.8 * 3, and the gradient of its logits there
// .6 * (2 - 2.8) * 3 and .4 * (4 - 2.8) * 3. A single gate is 1.
TEST_P(BalancedBatchwise, S18_ATokenThatNoExpertTakesInTrainingGivesZeroAndFiniteGradients) {
  const at::Tensor logits = clean().requires_grad_(true);
  const Routing r = route_balanced_batchwise(logits, threshold(), 1, {});
  EXPECT_TRUE(torch::equal(mask(r), table({{0, 0, 0, 0}, {1, 0, 0, 0}, {0, 1, 0, 1}, {0, 0, 1, 0}})));
  EXPECT_TRUE(near(dense_gates(r), table({{0, 0, 0, 0}, {1, 0, 0, 0}, {0, .6, 0, .4}, {0, 0, 1, 0}}), tol()));
  const at::Tensor x = torch::tensor({{1.}, {2.}, {3.}, {4.}}, GetParam()).requires_grad_(true);
  test::Scaling experts;
  const at::Tensor y = experts.apply_routing(x, r);
  EXPECT_TRUE(near(y, table({{0}, {1 * 2}, {2.8 * 3}, {3 * 4}}), 10 * tol()));
  EXPECT_EQ(y[0].item<double>(), 0);
  y.sum().backward();
  EXPECT_TRUE(near(x.grad(), table({{0}, {1}, {2.8}, {3}}), 4 * tol()));
  EXPECT_TRUE(near(logits.grad(), table({{0, 0, 0, 0}, {0, 0, 0, 0}, {0, -1.44, 0, 1.44}, {0, 0, 0, 0}}), 4 * tol()));
  logits.mutable_grad() = at::Tensor();
  importance_loss(route_balanced_batchwise(logits, threshold(), 1, {})).backward();
  EXPECT_TRUE(torch::isfinite(logits.grad()).all().item<bool>());
  EXPECT_TRUE((logits.grad()[0] == 0).all().item<bool>());
  EXPECT_GT(logits.grad()[2].abs().max().item<double>(), 0);
}

INSTANTIATE_TEST_SUITE_P(Types, BalancedBatchwise, ::testing::Values(torch::kFloat, torch::kDouble));

TEST(BalancedBatchwiseRouter, GatesHaveTheRightGradients) {
  at::Tensor clean = test::random_tensor({6, 4}, 1);
  const at::Tensor upstream = test::random_tensor({12}, 4), theta = torch::zeros({4}, torch::kDouble);
  const auto loss = [&] { return (route_balanced_batchwise(clean, theta, 2, {}).gate * upstream).sum(); };
  EXPECT_LT(test::gradient_error(loss, {clean}), 1e-8);
}

}  // namespace sparsight::balanced_batchwise_test
