#include "sparsight/moe/routing_stats.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "sparsight/moe/capacity.h"
#include "sparsight/moe/register_moe.h"
#include "sparsight/moe/routers/softmax_topk.h"
#include "sparsight/moe/routers/top_p.h"
#include "tests/moe/routers/token_batch.h"
#include "tests/moe/shazeer_example.h"
#include "tests/support/near.h"

namespace sparsight::routing_stats_test {

TEST(RoutingStats, OfTheWorkedExample) {
  const RoutingStats s =
      routing_stats(route_softmax_topk(test::example_logits(), test::example_epsilon(), 0.25, 2, false));
  EXPECT_EQ(s.count, (std::vector<double>{1, 2, 2, 1}));
  // Gates by expert: 0: .505696; 1: .184200 + .451452; 2: .728524 + .224184; 3: .284558
  const std::vector<double> importance{0.505696, 0.635652, 0.952708, 0.284558};
  for (size_t e = 0; e < 4; ++e) EXPECT_NEAR(s.importance[e], importance[e], 2e-6);
  // mean .5946535; squared differences .0079134 .0016809 .1282030 .0961592 -> variance .0584891, cv .406701
  EXPECT_NEAR(s.cv_importance, 0.406701, 1e-5);
  EXPECT_NEAR(s.max_over_mean_count, 2 / 1.5, 1e-12);
  EXPECT_EQ(s.dropped, 0);
  EXPECT_NEAR(s.mean_top_gate, (0.505696 + 0.728524 + 0.451452) / 3, 1e-6);
}

TEST(RoutingStats, WithoutNoiseTheLoadIsTheCount) {
  const RoutingStats s = routing_stats(route_softmax_topk(test::example_logits(), {}, 0, 2, false));
  EXPECT_EQ(s.smooth_load, s.count);
}

// Probabilities .15 .5 .05 .3 and four of .25: experts 1 3 0 sum to .95, and all four are needed for .9. So 7 choices;
// at a factor of .5 each expert has room for .5 * 7 / 4 = .875, rounded up to 1. By rank: 1 for token 0, 0 for token 1;
// 3 for token 0, 1 is full; 0 is full, 2 for token 1; 3 is full.
TEST(RoutingStats, ExpertsPerTokenChosenAndKeptByTopP) {
  Routing routing = route_top_p(test::table({{.15, .5, .05, .3}, {.25, .25, .25, .25}}).log(), .9, 4);
  apply_capacity(routing, CapacityOptions(), 0.5);
  const RoutingStats s = routing_stats(routing);
  EXPECT_DOUBLE_EQ(s.experts_per_token, 3.5);
  EXPECT_EQ(s.tokens_with, (std::vector<double>{0, 0, 0, 1, 1}));
  EXPECT_DOUBLE_EQ(s.kept_per_token, 2);
  EXPECT_EQ(s.tokens_with_kept, (std::vector<double>{0, 0, 2}));
  EXPECT_DOUBLE_EQ(s.dropped, 3.0 / 7);
}

// The logits are the tokens: 2, 0, 3 and 1 of them are positive; the last token is padding. At a factor of .5 each
// expert has room for .5 * 5 / 3 = .83, so 1: expert 2 for token 0 (its first choice), expert 0 for token 2, whose
// second choice 1 is free; then experts 0 and 2 are full.
TEST(RoutingStats, ExpertsPerTokenOfReluWithoutPadding) {
  const auto router = make_router({{"router", {{"name", "relu"}}}}, {3, 3});
  {
    const torch::NoGradGuard no_grad;
    router->named_parameters()["weight"].copy_(torch::eye(3));
  }
  RouterInput input = test::token_batch(torch::tensor({{1., -1., 2.}, {-1., -1., -1.}, {1., 1., 1.}, {0., 0., 3.}}));
  input.context.valid = torch::tensor({true, true, true, false});
  Routing routing = router->route(input);
  apply_capacity(routing, CapacityOptions(), 0.5);
  const RoutingStats s = routing_stats(routing);
  EXPECT_DOUBLE_EQ(s.experts_per_token, 5.0 / 3);
  EXPECT_EQ(s.tokens_with, (std::vector<double>{1, 0, 1, 1}));
  EXPECT_EQ(s.tokens_with_kept, (std::vector<double>{1, 1, 1}));
  EXPECT_DOUBLE_EQ(s.kept_per_token, 1);
}

// Figures for people: plain numbers without a gradient.
class RoutingStatsOf : public ::testing::TestWithParam<at::ScalarType> {};

TEST_P(RoutingStatsOf, S45_DroppedIsTheShareOfChosenAssignmentsThatCapacityDropped) {
  Routing routing = route_softmax_topk(test::example_logits().to(GetParam()), {}, 0, 2, false);
  CapacityOptions capacity;  // ceil(0.5 * 2 * 3 / 4) = 1: the counts 1 2 2 1 become 1 1 1 1
  apply_capacity(routing, capacity, 0.5);
  const RoutingStats s = routing_stats(routing);
  EXPECT_EQ(s.kept, (std::vector<double>{1, 1, 1, 1}));
  EXPECT_EQ(s.count, (std::vector<double>{1, 2, 2, 1}));
  EXPECT_NEAR(s.dropped, 2.0 / 6, 1e-12);
}

TEST_P(RoutingStatsOf, S45_NoisyTopKAreThoseOfTheWorkedExample) {
  const RoutingStats s = routing_stats(test::NoisyExample(GetParam()).route());
  const double tol = test::example_tolerance(GetParam());
  EXPECT_NEAR(s.cv_importance, 0.356468, tol);
  EXPECT_NEAR(s.cv_load, 0.203587, tol);
  EXPECT_NEAR(s.max_over_mean_load, 1.290976, tol);
  EXPECT_NEAR(s.max_over_mean_count, 2 / 1.5, 1e-12);
  EXPECT_EQ(s.dropped, 0);
  EXPECT_NEAR(s.mean_top_gate, (0.635277 + 0.814600 + 0.522606) / 3, tol);
}

INSTANTIATE_TEST_SUITE_P(Types, RoutingStatsOf, ::testing::Values(torch::kFloat, torch::kDouble));

TEST(RoutingStats, SumsOfTwoRoutingsAreThoseOfTheirUnion) {
  RoutingTotals totals(4);
  const Routing routing = route_softmax_topk(test::example_logits(), {}, 0, 2, false);
  totals.add(routing);
  totals.add(routing);
  EXPECT_EQ(routing_stats(totals).count, (std::vector<double>{2, 4, 4, 2}));
  EXPECT_NEAR(routing_stats(totals).cv_importance, routing_stats(routing).cv_importance, 1e-12);
  EXPECT_NEAR(routing_stats(totals).mean_top_gate, routing_stats(routing).mean_top_gate, 1e-12);
}

TEST(RoutingStats, OfAnEmptyBatchAreZeros) {
  const RoutingStats s = routing_stats(route_softmax_topk(torch::empty({0, 3}), {}, 0, 2, false));
  EXPECT_EQ(s.count, (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(s.cv_importance, 0);
  EXPECT_EQ(s.max_over_mean_count, 0);
  EXPECT_EQ(s.mean_top_gate, 0);
}

}  // namespace sparsight::routing_stats_test
