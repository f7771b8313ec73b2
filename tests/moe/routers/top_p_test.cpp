#include "sparsight/moe/routers/top_p.h"

#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "sparsight/moe/losses/balance.h"
#include "sparsight/moe/losses/logits.h"
#include "tests/moe/shazeer_example.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::top_p_test {
namespace {

using test::near;
using test::table;

// Probabilities .15 .5 .05 .3 and four of .25.
at::Tensor example() { return table({{.15, .5, .05, .3}, {.25, .25, .25, .25}}).log(); }

struct Choice {
  double p;
  int64_t most;
  std::vector<int64_t> token, expert, rank;
  std::vector<double> gate;
};

}  // namespace

// Sums of token 0: .5 .8 .95 1, of token 1: .25 .5 .75 1.
TEST(TopP, TakesTheFewestExpertsWhoseProbabilitiesSumToP) {
  const std::vector<Choice> choices{
      {.4, 4, {0, 1, 1}, {1, 0, 1}, {0, 0, 1}, {.5, .25, .25}},
      {.6, 4, {0, 0, 1, 1, 1}, {1, 3, 0, 1, 2}, {0, 1, 0, 1, 2}, {.5, .3, .25, .25, .25}},
      {.9, 4, {0, 0, 0, 1, 1, 1, 1}, {1, 3, 0, 0, 1, 2, 3}, {0, 1, 2, 0, 1, 2, 3}, {.5, .3, .15, .25, .25, .25, .25}},
      {.9, 2, {0, 0, 1, 1}, {1, 3, 0, 1}, {0, 1, 0, 1}, {.5, .3, .25, .25}},
      {.1, 4, {0, 1}, {1, 0}, {0, 0}, {.5, .25}}};
  for (const auto type : {torch::kFloat, torch::kDouble})
    for (const Choice& c : choices) {
      const Routing r = route_top_p(example().to(type), c.p, c.most);
      EXPECT_TRUE(torch::equal(r.token, torch::tensor(c.token, torch::kLong))) << c.p;
      EXPECT_TRUE(torch::equal(r.expert, torch::tensor(c.expert, torch::kLong))) << c.p;
      EXPECT_TRUE(torch::equal(r.rank, torch::tensor(c.rank, torch::kLong))) << c.p;
      EXPECT_TRUE(near(r.gate, torch::tensor(c.gate, torch::kDouble), 1e-6)) << c.p;
      EXPECT_EQ(r.per_token, c.most);
      EXPECT_TRUE(r.varying);
    }
}

// -(.15 ln .15 + .5 ln .5 + .05 ln .05 + .3 ln .3) = .284568 + .346574 + .149787 + .361192 = 1.142121, and ln 4 =
// 1.386294.
TEST(TopP, ItsDynamicLossIsTheMeanEntropy) {
  EXPECT_NEAR(entropy_loss(route_top_p(example(), .4, 4)).item<double>(), (1.142121 + 1.386294) / 2, 1e-6);
  const auto losses = TopPRouter({}, {3, 4}).default_losses();
  ASSERT_EQ(losses.size(), 2);
  EXPECT_EQ(losses[1].name, "entropy");
}

// Equation 6 counts every choice of an expert: with certain tokens on 2 of 4 experts each, evenly, 4 * 4 (1/2 * 1/4).
TEST(TopP, ItsBalanceLossCountsAllChoices) {
  const LossOptions losses = with_default_weights({}, TopPRouter({}, {3, 4}).default_losses());
  EXPECT_EQ(losses.variants.switch_counts, "sum");
  const at::Tensor clean = torch::tensor({{9., 9., 0., 0.}, {0., 0., 9., 9.}}, torch::kDouble);
  const Routing r = route_top_p(clean, .9, 4);
  EXPECT_NEAR(switch_loss(r, losses.variants.switch_counts).item<double>(), 2, 1e-6);
  EXPECT_FALSE(sequence_balance_loss(r).defined());  // needs a fixed number of choices: with k = 4 it would be constant
}

TEST(TopP, GatesHaveTheGradientOfTheProbabilities) {
  const at::Tensor clean = test::random_tensor({5, 4}, 3), upstream = test::random_tensor({5, 4}, 4);
  const auto loss = [&] { return (test::dense_gates(route_top_p(clean, .6, 3)) * upstream).sum(); };
  EXPECT_LT(test::gradient_error(loss, {clean}, 1e-6), 1e-7);
}

TEST(TopP, MoreThanAllExpertsAreRefused) {
  EXPECT_EQ(testing::error_text<UsageError>([] {
              TopPRouter({.max_k = 5}, {3, 4});
            }),
            "[router] max_k = 5 is above the 4 experts; lower it, or set it to 0 for all");
}

}  // namespace sparsight::top_p_test
