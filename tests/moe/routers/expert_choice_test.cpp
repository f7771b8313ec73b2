#include "sparsight/moe/routers/expert_choice.h"

#include <cmath>

#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "tests/moe/routers/token_batch.h"
#include "tests/moe/shazeer_example.h"
#include "tests/support/gradcheck.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::expert_choice_test {
namespace {

using test::near;
using test::token_batch;

at::Tensor ints(const std::vector<int64_t>& values) { return torch::tensor(values, torch::kLong); }

}  // namespace

class ExpertChoice : public ::testing::TestWithParam<at::ScalarType> {};

// Softmax of the clean logits of the worked example (printed with the V-MoE router):
//   .494362 .102337 .145223 .258079
//   .050330 .204099 .677632 .067939
//   .111700 .500606 .203531 .184163
// With 2 experts per token each expert takes ceil(2 * 3 / 4) = 2 of the 3 tokens.
TEST_P(ExpertChoice, EachExpertTakesItsBestTokens) {
  const Routing r = route_expert_choice(test::example_logits().to(GetParam()), {}, 1, 2);
  EXPECT_TRUE(torch::equal(r.expert, ints({0, 0, 1, 1, 2, 2, 3, 3})));
  EXPECT_TRUE(torch::equal(r.token, ints({0, 2, 2, 1, 1, 2, 0, 2})));
  EXPECT_TRUE(torch::equal(r.rank, ints({0, 1, 0, 1, 0, 1, 0, 1})));
  EXPECT_TRUE(torch::equal(r.offsets, ints({0, 2, 4, 6, 8})));
  EXPECT_EQ(r.per_token, 0);
  EXPECT_EQ(r.gate.scalar_type(), GetParam());
  EXPECT_TRUE(near(
      r.gate,
      torch::tensor({0.494362, 0.111700, 0.500606, 0.204099, 0.677632, 0.203531, 0.258079, 0.184163}, torch::kDouble),
      test::example_tolerance(GetParam())));
}

TEST_P(ExpertChoice, ChoosesWithinEachImage) {
  const at::Tensor logits = test::random_tensor({6, 4}, 1).to(GetParam());
  const Routing whole = route_expert_choice(logits, {}, 2, 2);
  // Images by themselves give the same: 3 tokens each, 2 of them for each expert.
  for (const int64_t image : {0, 1}) {
    const Routing part = route_expert_choice(logits.slice(0, 3 * image, 3 * image + 3), {}, 1, 2);
    const at::Tensor mine = torch::nonzero(whole.token.floor_divide(3) == image).squeeze(1);
    EXPECT_TRUE(torch::equal(whole.token.index_select(0, mine), part.token + 3 * image));
    EXPECT_TRUE(torch::equal(whole.expert.index_select(0, mine), part.expert));
    EXPECT_TRUE(torch::equal(whole.gate.index_select(0, mine), part.gate));
  }
  EXPECT_TRUE(torch::equal(whole.chosen_count, ints({4, 4, 4, 4})));
}

INSTANTIATE_TEST_SUITE_P(Types, ExpertChoice, ::testing::Values(torch::kFloat, torch::kDouble));

TEST(ExpertChoiceRouter, RowsAreRoundedUpWithinOneAndTheTokens) {
  const auto rows = [](int64_t tokens, int64_t experts, double per_token) {
    return route_expert_choice(torch::zeros({tokens, experts}), {}, 1, per_token).chosen_count[0].item<int64_t>();
  };
  EXPECT_EQ(rows(10, 4, 1), 3);       // 2.5
  EXPECT_EQ(rows(100, 10, 1.1), 11);  // 11.000000000000002
  EXPECT_EQ(rows(10, 8, 0.1), 1);     // 0.125
  EXPECT_EQ(rows(3, 2, 2), 3);
  EXPECT_EQ(rows(0, 2, 2), 0);
}

TEST(ExpertChoiceRouter, TiesGoToTheLowestTokenNanRanksLastPaddingNever) {
  at::Tensor logits = torch::zeros({5, 2});
  EXPECT_TRUE(torch::equal(route_expert_choice(logits, {}, 1, 0.8).token, ints({0, 1, 0, 1})));
  logits[0].fill_(NAN);
  const at::Tensor valid = torch::tensor({true, false, true, true, false});
  // 3 tokens count; ceil(1.4 * 3 / 2) = 3 for each expert: the NaN comes last.
  EXPECT_TRUE(torch::equal(route_expert_choice(logits, valid, 1, 1.4).token, ints({2, 3, 0, 2, 3, 0})));
}

TEST(ExpertChoiceRouter, GatesHaveTheRightGradients) {
  at::Tensor clean = test::random_tensor({6, 4}, 1);
  const at::Tensor upstream = test::random_tensor({12}, 4);
  const auto loss = [&] { return (route_expert_choice(clean, {}, 1, 2).gate * upstream).sum(); };
  EXPECT_LT(test::gradient_error(loss, {clean}), 1e-8);
}

TEST(ExpertChoiceRouter, MoreExpertsPerTokenThanExpertsIsAnError) {
  ExpertChoiceOptions options;
  options.experts_per_token = 4.5;
  EXPECT_THROW(ExpertChoiceRouter(options, {3, 4}), UsageError);
}

}  // namespace sparsight::expert_choice_test
