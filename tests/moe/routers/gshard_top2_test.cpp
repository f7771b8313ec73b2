#include "sparsight/moe/routers/gshard_top2.h"

#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "tests/moe/routers/token_batch.h"
#include "tests/moe/shazeer_example.h"
#include "tests/support/gradcheck.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::gshard_top2_test {
namespace {

using test::near;
using test::table;

// Gates of the worked example's clean logits: first .657010 .768525 .710950, second .342990 .231475 .289050
at::Tensor logits() { return test::example_logits(); }

}  // namespace

TEST(GshardTop2, GatesAreTheTwoProbabilitiesOverTheirSum) {
  for (const auto type : {torch::kFloat, torch::kDouble}) {
    const Routing r = route_gshard_top2(logits().to(type), "all", 0.5, {}, {});
    EXPECT_TRUE(torch::equal(r.expert, torch::tensor({0, 3, 2, 1, 1, 2}, torch::kLong)));
    EXPECT_TRUE(near(r.gate, torch::tensor({.657010, .342990, .768525, .231475, .710950, .289050}, torch::kDouble),
                     test::example_tolerance(type)));
    EXPECT_TRUE(near(r.scores.sum(1), torch::ones({3}), type == torch::kDouble ? 1e-12 : 1e-6));
    EXPECT_EQ(r.gate.scalar_type(), type);
  }
}

TEST(GshardTop2, PoliciesOfTheSecondChoice) {
  const auto tokens_with_two = [](const Routing& r) { return r.token.masked_select(r.rank == 1); };
  EXPECT_EQ(tokens_with_two(route_gshard_top2(logits(), "none", 0.5, {}, {})).numel(), 0);
  const Routing above = route_gshard_top2(logits(), "threshold", 0.25, {}, {});
  EXPECT_TRUE(torch::equal(tokens_with_two(above), torch::tensor({0, 2}, torch::kLong)));
  EXPECT_EQ(above.chosen_count.sum().item<int64_t>(), 5);  // a skipped choice is no assignment
  EXPECT_EQ(above.per_token, 2);
  // Twice the gates: .685980 .462950 .578100
  const Routing drawn = route_gshard_top2(logits(), "random", 0.5, torch::tensor({.68, .47, .57}, torch::kDouble), {});
  EXPECT_TRUE(torch::equal(tokens_with_two(drawn), torch::tensor({0, 2}, torch::kLong)));
  EXPECT_TRUE(near(drawn.gate, torch::tensor({.657010, .342990, .768525, .710950, .289050}, torch::kDouble), 1e-6));
}

// Row 0 of the probabilities: .494362 .258079 .145223 over their sum, .897664.
TEST(GshardTop2, MoreThanTwoInEvaluationUnderTheSamePolicies) {
  const at::Tensor row = logits().narrow(0, 0, 1);
  const Routing all = route_gshard_top2(row, "all", 0.5, {}, {}, 3);
  EXPECT_TRUE(torch::equal(all.expert, torch::tensor({0, 3, 2}, torch::kLong)));
  EXPECT_TRUE(near(all.gate, torch::tensor({.550721, .287501, .161779}, torch::kDouble), 2e-6));
  const Routing above = route_gshard_top2(row, "threshold", 0.25, {}, {}, 3);
  EXPECT_TRUE(torch::equal(above.expert, torch::tensor({0, 3}, torch::kLong)));
  // Used with probability .575002 and .323558.
  const Routing drawn = route_gshard_top2(row, "random", 0.5, torch::tensor({{.58, .32}}, torch::kDouble), {}, 3);
  EXPECT_TRUE(torch::equal(drawn.expert, torch::tensor({0, 2}, torch::kLong)));
  const Routing one = route_gshard_top2(row, "none", 0.5, {}, {}, 1);
  EXPECT_TRUE(near(one.gate, torch::ones({1}, torch::kDouble), 0));
}

TEST(GshardTop2, TheSecondExpertMayBeSampledFromTheOthers) {
  // The first choice is never sampled again, however large its perturbed logit.
  const at::Tensor gumbel = table({{99, 0, 5, 0}, {0, 0, 99, 5}, {5, 99, 0, 0}});
  const Routing r = route_gshard_top2(logits(), "all", 0.5, {}, gumbel);
  EXPECT_TRUE(torch::equal(r.expert, torch::tensor({0, 2, 2, 3, 1, 0}, torch::kLong)));
}

TEST(GshardTop2, TheRouterSamplesSecondExpertsByTheirProbabilities) {
  GshardTop2Options options;
  options.second = "all";
  options.sample_second = true;
  GshardTop2Router router(options, {1, 3});
  {
    const torch::NoGradGuard no_grad;
    router.weight.copy_(torch::tensor({{2.f}, {1.f}, {0.f}}));
  }
  const int64_t n = 20000;
  const Routing r = router.route(test::token_batch(torch::ones({n, 1})));
  // Without the first: e / (e + 1) = 0.731059 for expert 1; four standard errors are 0.0125
  const double share = r.chosen_count[1].item<double>() / static_cast<double>(n);
  EXPECT_NEAR(share, 0.731059, 0.0125);
}

TEST(GshardTop2, TheRouterUsesSecondChoicesAsOftenAsTheirGatesSay) {
  GshardTop2Router router({}, {1, 2});
  {
    const torch::NoGradGuard no_grad;
    router.weight.copy_(torch::tensor({{1.f}, {0.f}}));
  }
  const int64_t n = 20000;
  const at::Tensor x = torch::ones({n, 1});
  // The gate of the second is 1 / (1 + e) = 0.268941, used with probability 0.537883; four standard errors are 0.0141
  EXPECT_NEAR(router.route(test::token_batch(x)).chosen_count[1].item<double>() / static_cast<double>(n), 0.537883,
              0.0141);
  EXPECT_EQ(router.route(test::evaluated(test::token_batch(x))).chosen_count[1].item<int64_t>(), n);
}

TEST(GshardTop2, GatesHaveTheRightGradients) {
  at::Tensor clean = test::random_tensor({5, 4}, 1);
  const at::Tensor upstream = test::random_tensor({10}, 2);
  EXPECT_LT(test::gradient_error([&] { return (route_gshard_top2(clean, "all", 0.5, {}, {}).gate * upstream).sum(); },
                                 {clean}),
            1e-8);
}

TEST(GshardTop2, OneExpertIsAnError) { EXPECT_THROW(GshardTop2Router({}, {4, 1}), UsageError); }

}  // namespace sparsight::gshard_top2_test
