// Switch, z, sequence, threshold, super-class and entropy losses against worked examples.
#include <cmath>

#include <gtest/gtest.h>

#include "sparsight/moe/finish_routing.h"
#include "sparsight/moe/losses/balance.h"
#include "sparsight/moe/losses/importance.h"
#include "sparsight/moe/losses/load.h"
#include "sparsight/moe/losses/logits.h"
#include "sparsight/moe/losses/targets.h"
#include "sparsight/moe/routers/gshard_top2.h"
#include "sparsight/moe/routers/sigmoid_bias.h"
#include "sparsight/moe/routers/softmax_topk.h"
#include "tests/moe/shazeer_example.h"
#include "tests/support/gradcheck.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"
#include "tests/support/typed_gradcheck.h"

namespace sparsight::balance_losses_test {
namespace {

using test::near;
using test::table;

Routing route(const at::Tensor& clean, int64_t k) { return route_softmax_topk(clean, {}, 0, k, false); }

// One token for each rotation of its logits, so that every expert has the same number of tokens and mean score.
at::Tensor balanced_logits(at::ScalarType type) {
  std::vector<at::Tensor> rows;
  for (int64_t j = 0; j < 4; ++j) rows.push_back(torch::tensor({1.5, 0.7, -0.2, -1.}, torch::kDouble).roll(j));
  return torch::stack(rows).to(type);
}

}  // namespace

class BalanceLosses : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  double tol() const { return test::example_tolerance(GetParam()); }
  double rounding() const { return GetParam() == torch::kDouble ? 1e-12 : 1e-6; }  // of what is not printed
  at::Tensor logits() const { return test::example_logits().to(GetParam()).requires_grad_(true); }
};

TEST_P(BalanceLosses, S20_SwitchReproducesT13) {
  const at::Tensor clean = logits();
  const at::Tensor loss = switch_loss(route(clean, 1));
  EXPECT_TRUE(near(loss, 1.106586, tol()));
  EXPECT_NEAR(0.01 * loss.item<double>(), 0.011065864, 0.01 * tol());
  EXPECT_TRUE(near(switch_loss(route(clean, 1), "mean", "gshard"), 0.069161650, tol()));
  EXPECT_TRUE(near(switch_loss(route(clean, 2), "mean"), 1.074095, tol()));
  EXPECT_TRUE(near(switch_loss(route(clean, 2), "sum"), 2.148190, tol()));
  EXPECT_TRUE(near(switch_loss(route(clean, 2), "first"), 1.106586, tol()));
  // GShard's own default counts first choices. "mean" divides by k even where second choices are skipped: half of it.
  const Routing gshard = route_gshard_top2(clean, "none", 0.5, {}, {});
  EXPECT_TRUE(near(switch_loss(gshard, "first"), 1.106586, tol()));
  EXPECT_TRUE(near(switch_loss(gshard, "mean"), 1.106586 / 2, tol()));
  const LossOptions defaults = with_default_weights({}, GshardTop2Router({}, {4, 4}).default_losses());
  EXPECT_EQ(defaults.variants.switch_counts, "first");
  loss.backward();
  EXPECT_TRUE(near(clean.grad(),
                   table({{0.056704, 0.011738, 0.016657, -0.085100},
                          {0.001520, 0.006163, 0.020461, -0.028144},
                          {0.009143, 0.040975, 0.016659, -0.066776}}),
                   tol()));
  // The specification prints no gradients for two choices: central differences give them.
  for (const std::string counts : {"mean", "sum"}) {
    const auto of_two = [&](const std::vector<at::Tensor>& leaf) { return switch_loss(route(leaf[0], 2), counts); };
    EXPECT_LT(test::gradient_error_in(GetParam(), of_two, {test::example_logits()}), tol()) << counts;
  }
}

TEST_P(BalanceLosses, S20_OnNoisyLogitsAsInT12) {
  const Routing r = route_softmax_topk(logits(), test::example_epsilon().to(GetParam()), 0.25, 2, false);
  EXPECT_TRUE(near(switch_loss(r, "first"), 1.114928, tol()));
}

TEST_P(BalanceLosses, S21_RouterZReproducesT13) {
  const at::Tensor clean = logits();
  const at::Tensor loss = router_z_loss(route(clean, 1));
  EXPECT_TRUE(near(loss, 3.169983, tol()));
  loss.backward();
  EXPECT_TRUE(near(clean.grad(),
                   table({{0.545277, 0.112876, 0.160179, 0.284659},
                          {0.068421, 0.277459, 0.921196, 0.092358},
                          {0.120408, 0.539632, 0.219398, 0.198519}}),
                   tol()));
}

TEST_P(BalanceLosses, S22_SequenceBalanceReproducesT14) {
  // The bias affects the choice; the loss uses the scores alone.
  const at::Tensor bias = torch::tensor({0.05, -0.10, 0.00, 0.30}, GetParam());
  const Routing r = route_sigmoid_bias(logits(), bias, 2, 1, {});
  EXPECT_TRUE(near(sequence_balance_loss(r), 1.037330, tol()));
  EXPECT_NEAR(SigmoidBiasRouter({}, {3, 4}).default_losses()[0].weight * sequence_balance_loss(r).item<double>(),
              0.000103733, 1e-4 * tol());
  const auto loss = [&](const std::vector<at::Tensor>& leaf) {
    return sequence_balance_loss(route_sigmoid_bias(leaf[0], bias.to(leaf[0].scalar_type()), 2, 1, {}));
  };
  EXPECT_LT(test::gradient_error_in(GetParam(), loss, {test::example_logits()}), tol());
}

// 1, and no gradient, as the shares of a token sum to 1. With all tokens surely on the same k experts f = E/k and
// p = 1/k there: E/k.
TEST_P(BalanceLosses, SequenceBalanceIsOneAtBalance) {
  for (int64_t k = 1; k <= 4; ++k) {
    const at::Tensor clean = balanced_logits(GetParam()).requires_grad_(true);
    const at::Tensor loss = sequence_balance_loss(route_sigmoid_bias(clean, torch::zeros({4}, GetParam()), k, 1, {}));
    EXPECT_TRUE(near(loss, 1, 0.1 * tol())) << k;
    loss.backward();
    EXPECT_TRUE(near(clean.grad(), torch::zeros({4, 4}), 0.1 * tol())) << k;
    const at::Tensor sure = (torch::arange(4) < k).to(GetParam()).expand({5, 4}) * 200 - 100;
    const Routing all = route_sigmoid_bias(sure, torch::zeros({4}, GetParam()), k, 1, {});
    EXPECT_TRUE(near(sequence_balance_loss(all), 4.0 / static_cast<double>(k), tol())) << k;
  }
}

TEST_P(BalanceLosses, S17_ThresholdReproducesT11) {
  Routing r;
  r.tokens = r.experts = 4;
  r.scores =
      table({{.40, .30, .20, .10}, {.55, .05, .15, .25}, {.10, .45, .15, .30}, {.34, .26, .22, .18}}).to(GetParam());
  r.threshold = torch::tensor({.45, .28, .12, .20}, GetParam()).requires_grad_(true);
  // M_bw, expert by expert: tokens 0 1 | 0 2 | 0 3 | 1 2
  r.expert = torch::tensor({0, 0, 1, 1, 2, 2, 3, 3}, torch::kLong);
  r.token = torch::tensor({0, 1, 0, 2, 0, 3, 1, 2}, torch::kLong);
  const at::Tensor loss = threshold_loss(r);
  EXPECT_TRUE(near(loss, 0.11, tol()));
  loss.backward();
  EXPECT_TRUE(near(r.threshold.grad(), torch::tensor({1., 0., -2., 0.}, torch::kDouble), tol()));
  // Between the second and third largest score of each expert the masks agree.
  for (const auto& theta : {std::vector<double>{.34, .26, .15, .18}, {.3999, .2999, .1999, .2499}}) {
    r.threshold = torch::tensor(theta, torch::kDouble).to(GetParam());
    EXPECT_NEAR(threshold_loss(r).item<double>(), 0, 1e-7);
  }
}

TEST_P(BalanceLosses, SuperclassReproducesTheWorkedExample) {
  // logits (1,2,0), target expert 0: loss 1.407606, gradient p - target
  const at::Tensor clean = torch::tensor({{1., 2., 0.}}, GetParam()).requires_grad_(true);
  Routing r = route(clean, 1);
  EXPECT_FALSE(superclass_loss(r).defined());
  r.target = torch::tensor({{1., 0., 0.}}, GetParam());
  const at::Tensor loss = superclass_loss(r);
  EXPECT_TRUE(near(loss, 1.407606, tol()));
  loss.backward();
  EXPECT_TRUE(near(clean.grad(), table({{-0.755272, 0.665241, 0.090031}}), tol()));
}

// An image with one token left counts as much as one with three. -log softmax of (1,2,0): 1.407606, 0.407606, 2.407606.
TEST_P(BalanceLosses, SuperclassIsAMeanOverImages) {
  Routing r = route(torch::tensor({{1., 2., 0.}}, GetParam()).repeat({6, 1}), 1);
  r.target = torch::tensor({{1., 0., 0.}, {0., 1., 0.}}, GetParam());
  r.valid = torch::tensor({true, false, false, true, true, true});
  EXPECT_TRUE(near(superclass_loss(r), (1.407606 + 0.407606) / 2, tol()));
  r.valid = torch::tensor({false, false, false, true, true, true});
  EXPECT_TRUE(near(superclass_loss(r), 0.407606, tol()));
}

TEST_P(BalanceLosses, S20_UniformRoutingGivesOne) {
  // Four tokens, each with its own expert, and equal mean probabilities.
  const at::Tensor clean = (torch::eye(4, GetParam()) * 3).requires_grad_(true);
  const Routing r = route(clean, 1);
  EXPECT_NEAR(switch_loss(r).item<double>(), 1, 0.1 * tol());
  EXPECT_NEAR(switch_loss(r, "mean", "gshard").item<double>(), 1.0 / 16, 0.1 * tol());
  // dp = E f / N is the same for all experts, and probabilities sum to 1: no gradient.
  switch_loss(r).backward();
  EXPECT_TRUE(near(clean.grad(), torch::zeros({4, 4}), 0.1 * tol()));
}

TEST_P(BalanceLosses, S20_IsTheMeanOverGroups) {
  const at::Tensor logits = test::random_tensor({10, 3}, 1, GetParam());
  Routing whole = route(logits, 2);
  set_consecutive_groups(whole, 4);  // groups of 4, 4 and 2 tokens
  double sum = 0;
  for (const auto& [first, last] : {std::pair<int64_t, int64_t>{0, 4}, {4, 8}, {8, 10}})
    sum += switch_loss(route(logits.slice(0, first, last), 2)).item<double>();
  EXPECT_NEAR(switch_loss(whole).item<double>(), sum / 3, GetParam() == torch::kDouble ? 1e-12 : 1e-6);
}

TEST(BalanceLoss, PaddingDoesNotCount) {
  const at::Tensor logits = test::random_tensor({10, 4}, 1);
  const at::Tensor valid = torch::arange(10) < 7;
  Routing padded = route(logits, 2), without = route(logits.slice(0, 0, 7), 2);
  drop_padding(padded, valid);
  for (const auto loss : {router_z_loss, entropy_loss, marginal_entropy_loss, sequence_balance_loss})
    EXPECT_NEAR(loss(padded).item<double>(), loss(without).item<double>(), 1e-12);
  EXPECT_NEAR(switch_loss(padded).item<double>(), switch_loss(without).item<double>(), 1e-12);
}

// A mean over groups is one over those in which a token counts.
TEST(BalanceLoss, GroupsOfPaddingDoNotCount) {
  const at::Tensor logits = test::random_tensor({12, 4}, 1), noise = test::random_tensor({12, 4}, 2);
  const auto routed = [&](int64_t tokens) {
    Routing r = route_softmax_topk(logits.slice(0, 0, tokens), noise.slice(0, 0, tokens), 0.25, 2, false);
    r.layout.per_image = 4;
    set_consecutive_groups(r, 4);
    return r;
  };
  Routing padded = routed(12);
  const Routing without = routed(8);
  drop_padding(padded, torch::arange(12) < 8);
  const auto same = [&](const auto& loss) { EXPECT_NEAR(loss(padded), loss(without), 1e-12); };
  same([](const Routing& r) { return sequence_balance_loss(r).item<double>(); });
  same([](const Routing& r) { return switch_loss(r).item<double>(); });
  same([](const Routing& r) { return vmoe_importance_loss(r, false).item<double>(); });
  same([](const Routing& r) { return vmoe_load_loss(r, false, false).item<double>(); });
}

// Logits all equal: every expert has the probability 1/E, so the loss is the share of choices that were made: 8 first
// and 3 second ones of 2 * 8.
TEST(BalanceLoss, SkippedChoicesLowerTheSwitchLoss) {
  const at::Tensor logits = torch::zeros({8, 4}, torch::kDouble);
  Routing r = route(logits, 2);
  select_assignments(r, at::nonzero((r.rank == 0).logical_or(r.token < 3)).squeeze(1));
  EXPECT_EQ(r.token.size(0), 11);
  EXPECT_NEAR(switch_loss(r).item<double>(), 11.0 / 16, 1e-12);
  EXPECT_NEAR(switch_loss(r, "first").item<double>(), 1, 1e-12);
}

// logsumexp of the rows: 10000, and -10000 + ln 2 = -9999.306853; the mean of their squares is 99993068.768. The
// gradient is logsumexp * softmax (2/N = 1): 10000 at the larger logit, -9999.306853 / 2 at two equal ones.
TEST_P(BalanceLosses, S21_RouterZStaysFiniteForHugeLogits) {
  const at::Tensor clean = torch::tensor({{1e4, -1e4}, {-1e4, -1e4}}, GetParam()).requires_grad_(true);
  const at::Tensor loss = router_z_loss(route(clean, 1));
  loss.backward();
  const bool fp64 = GetParam() == torch::kDouble;
  EXPECT_NEAR(loss.item<double>() / 99993068.768, 1, fp64 ? 1e-10 : 1e-6);
  // The spacing of fp32 numbers near 10000 is 2^-10: exponents of the softmax are off by up to half of that.
  EXPECT_TRUE(
      near(clean.grad() / 1e4, table({{1, 0}, {-0.499965342641, -0.499965342641}}), fp64 ? 1e-10 : std::ldexp(1, -11)));
}

TEST_P(BalanceLosses, EntropiesAtTheirEnds) {
  const double most = std::log(4.0);
  const Routing indifferent = route(torch::zeros({8, 4}, GetParam()), 1);
  EXPECT_TRUE(near(entropy_loss(indifferent), most, rounding()));
  EXPECT_TRUE(near(marginal_entropy_loss(indifferent), 0., rounding()));
  EXPECT_TRUE(near(mutual_information_loss(indifferent), most, rounding()));
  const Routing sure = route(torch::eye(4, GetParam()) * 100, 1);  // every token surely on an expert of its own
  EXPECT_TRUE(near(entropy_loss(sure), 0., rounding()));
  EXPECT_TRUE(near(marginal_entropy_loss(sure), 0., rounding()));
  EXPECT_TRUE(near(mutual_information_loss(sure), 0., rounding()));
  const Routing one = route(torch::tensor({{100., 0., 0., 0.}}, GetParam()).repeat({5, 1}), 1);
  EXPECT_TRUE(near(entropy_loss(one), 0., rounding()));
  EXPECT_TRUE(near(marginal_entropy_loss(one), most, rounding()));
}

// Probabilities 1/2 1/4 1/8 1/8 and their reverse: each has the entropy (1/2 + 2/4 + 3/8 + 3/8) ln 2, their mean
// 5/16 3/16 3/16 5/16 that of -(10 ln(5/16) + 6 ln(3/16)) / 16.
TEST_P(BalanceLosses, EntropiesByHand) {
  const at::Tensor p = table({{.5, .25, .125, .125}, {.125, .125, .25, .5}}).to(GetParam());
  const Routing r = route(p.log(), 1);
  const double of_token = 1.75 * std::log(2.0), of_mean = -(10 * std::log(5. / 16) + 6 * std::log(3. / 16)) / 16;
  EXPECT_TRUE(near(entropy_loss(r), of_token, rounding()));
  EXPECT_TRUE(near(marginal_entropy_loss(r), std::log(4.0) - of_mean, rounding()));
  EXPECT_TRUE(near(mutual_information_loss(r), std::log(4.0) - of_mean + of_token, rounding()));
}

// logsumexp of E zeros is ln E; the gradient is 2/N * ln E * 1/E for every logit.
TEST_P(BalanceLosses, S21_RouterZOfZeroLogitsIsTheSquareOfLnE) {
  for (const int64_t experts : {2, 4, 7}) {
    const double size = std::log(static_cast<double>(experts));
    const at::Tensor clean = torch::zeros({5, experts}, GetParam()).requires_grad_(true);
    const at::Tensor loss = router_z_loss(route(clean, 1));
    EXPECT_TRUE(near(loss, size * size, 4 * rounding())) << experts;
    loss.backward();
    EXPECT_TRUE(near(clean.grad(), torch::full({5, experts}, 0.4 * size / static_cast<double>(experts)), 1e-6));
  }
}

// Surely wrong by logits of 100 is a loss of 100. The gradient is p - target, over the number of tokens.
TEST_P(BalanceLosses, SuperclassIsLnEWhenIndifferentAndZeroWhenSureAndRight) {
  const at::Tensor target = torch::eye(4, GetParam());  // an image for each super-class, of one token
  const auto compute_loss = [&](const at::Tensor& logits) {
    Routing r = route(logits, 1);
    r.target = target;
    return superclass_loss(r);
  };
  const at::Tensor indifferent = torch::zeros({4, 4}, GetParam()).requires_grad_(true);
  const at::Tensor loss = compute_loss(indifferent);
  EXPECT_TRUE(near(loss, std::log(4.0), rounding()));
  loss.backward();
  EXPECT_TRUE(near(indifferent.grad(), (0.25 - target) / 4, rounding()));
  EXPECT_TRUE(near(compute_loss(100 * target), 0., rounding()));
  EXPECT_TRUE(near(compute_loss(100 * target.roll(1, 1)), 100., rounding()));
}

// Mean probabilities of 1/E, so that E * sum of f / E is the sum of f: 1 for shares of first choices and of all
// choices, k where all choices are counted by token.
TEST_P(BalanceLosses, S20_UniformRoutingGivesOneForEveryKAndKWhereChoicesAreSummed) {
  for (int64_t k = 1; k <= 4; ++k) {
    const Routing r = route(balanced_logits(GetParam()), k);
    const auto all = static_cast<double>(k);
    EXPECT_TRUE(near(switch_loss(r), 1, rounding())) << k;
    EXPECT_TRUE(near(switch_loss(r, "first"), 1, rounding())) << k;
    EXPECT_TRUE(near(switch_loss(r, "sum"), all, 4 * rounding())) << k;
    EXPECT_TRUE(near(switch_loss(r, "mean", "gshard"), 1. / 16, rounding())) << k;
    EXPECT_TRUE(near(switch_loss(r, "sum", "gshard"), all / 16, rounding())) << k;
  }
}

// f and p are 1 for one expert and 0 for the others; with two choices half of them are another expert's, of which p
// knows nothing.
TEST_P(BalanceLosses, S20_TheNumberOfExpertsWhereAllTokensAreSurelyOnOne) {
  const at::Tensor sure = torch::tensor({{0., 100., 0., 0., 0.}}, GetParam()).repeat({6, 1});
  for (const std::string counts : {"first", "mean", "sum"}) {
    EXPECT_TRUE(near(switch_loss(route(sure, 1), counts), 5, tol())) << counts;
    EXPECT_TRUE(near(switch_loss(route(sure, 1), counts, "gshard"), 1. / 5, tol())) << counts;
    EXPECT_TRUE(near(switch_loss(route(sure, 2), counts), counts == "mean" ? 2.5 : 5, tol())) << counts;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, BalanceLosses, ::testing::Values(torch::kFloat, torch::kDouble));

TEST(BalanceLoss, GradientsAgreeWithCentralDifferences) {
  at::Tensor clean = test::random_tensor({12, 5}, 1);
  const auto with_target = [&] {
    Routing r = route(clean, 2);
    r.target = at::softmax(test::random_tensor({3, 5}, 2), 1);  // 3 images of 4 tokens
    return superclass_loss(r);
  };
  EXPECT_LT(test::gradient_error(with_target, {clean}), 1e-7);
  EXPECT_LT(test::gradient_error([&] { return switch_loss(route(clean, 2)); }, {clean}), 1e-7);
  EXPECT_LT(test::gradient_error([&] { return router_z_loss(route(clean, 2)); }, {clean}), 1e-7);
  EXPECT_LT(test::gradient_error([&] { return sequence_balance_loss(route(clean, 2)); }, {clean}), 1e-7);
  EXPECT_LT(test::gradient_error([&] { return mutual_information_loss(route(clean, 2)); }, {clean}), 1e-7);
}

}  // namespace sparsight::balance_losses_test
