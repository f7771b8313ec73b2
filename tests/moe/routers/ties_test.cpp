// Ties of top-k routers: the lowest index, or equal probabilities (equation 1 of Puigcerver et al. 2022).
#include "sparsight/moe/routers/ties.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "sparsight/moe/register_moe.h"
#include "sparsight/nn/init.h"
#include "tests/moe/routers/token_batch.h"
#include "tests/support/random_tensor.h"
#include "tests/support/thread_count.h"

namespace sparsight::ties_test {
namespace {

constexpr int64_t kWidth = 3, kExperts = 5;

std::shared_ptr<Router> router_with(const std::string& name, const Json& settings) {
  Json all{{"name", name}, {"k", 1}, {"noise", name == "noisy_topk" ? Json(false) : Json(0)}};
  all.update(settings);
  const auto router = make_router({{"router", all}}, {kWidth, kExperts});
  initialize(*router, 1);
  return router;
}

// All logits of such a router are equal for tokens of 0.
at::Tensor zeros(int64_t count) { return torch::zeros({count, kWidth}); }

std::vector<double> expert_counts(const at::Tensor& expert) {
  const at::Tensor counts = torch::bincount(expert, {}, kExperts).to(torch::kDouble);
  return {counts.const_data_ptr<double>(), counts.const_data_ptr<double>() + kExperts};
}

// The expert of each of the images `first` .. `first` + count - 1.
at::Tensor chosen(Router& router, int64_t first, int64_t count) {
  return router.route(test::token_batch_of_images(zeros(count), first)).expert;
}

}  // namespace

// Scores with draws: of equal ones the smaller draw is first; others keep their order; NaN is last.
TEST(Ties, EqualScoresFollowTheDraw) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const at::Tensor scores = torch::tensor({{1.f, 1.f, 1.f}, {0.f, 2.f, 2.f}, {nan, 1.f, 1.f}, {3.f, 2.f, 1.f}});
  const at::Tensor draw = torch::tensor({{.5f, .1f, .9f}, {.0f, .7f, .2f}, {.0f, .7f, .2f}, {.9f, .5f, .1f}});
  EXPECT_TRUE(torch::equal(top_experts_by_draw(scores, 3, draw),
                           torch::tensor({{1, 0, 2}, {2, 1, 0}, {2, 1, 0}, {0, 1, 2}}, torch::kLong)));
  EXPECT_TRUE(torch::equal(top_experts_by_draw(scores, 1, {}), torch::tensor({{0}, {1}, {1}, {0}}, torch::kLong)));
}

class TiesOf : public ::testing::TestWithParam<std::string> {};

// A share of 1/5 of 30,000 images, within five standard deviations of a binomial: sqrt(30,000 * 0.2 * 0.8) = 69.
TEST_P(TiesOf, AtRandomEachExpertIsChosenEquallyOften) {
  constexpr int64_t kCount = 30000;
  const auto router = router_with(GetParam(), {{"ties", "random"}});
  const RouterInput input = test::token_batch_of_images(zeros(kCount));
  const double bound = 5 * std::sqrt(kCount * 0.2 * 0.8);
  for (const RouterInput& pass : {input, test::evaluated(input)})
    for (const double count : expert_counts(router->route(pass).expert)) EXPECT_NEAR(count, kCount / 5.0, bound);
  // Two of five, in any order: a share of 2/5.
  const Routing two = router_with(GetParam(), {{"ties", "random"}, {"k", 2}})->route(input);
  for (const double count : expert_counts(two.expert))
    EXPECT_NEAR(count, kCount * 0.4, 5 * std::sqrt(kCount * 0.4 * 0.6));
}

TEST_P(TiesOf, AtRandomTheChoiceFollowsTheImageAlone) {
  const auto router = router_with(GetParam(), {{"ties", "random"}});
  const at::Tensor whole = chosen(*router, 0, 400);
  EXPECT_TRUE(torch::equal(chosen(*router, 0, 400), whole));
  EXPECT_TRUE(torch::equal(chosen(*router, 150, 250), whole.slice(0, 150)));
  EXPECT_FALSE(torch::equal(chosen(*router, 400, 400), whole));
  for (const int threads : {1, 3}) {
    const test::ThreadCount scope(threads);
    EXPECT_TRUE(torch::equal(chosen(*router, 0, 400), whole)) << threads;
  }
}

TEST_P(TiesOf, ByDefaultTheLowestIndexIsChosenWithoutRandomNumbers) {
  const auto router = router_with(GetParam(), Json::object());
  std::set<std::string> requested;
  RouterInput input = test::token_batch_of_images(zeros(50));
  input.context.requested = &requested;
  EXPECT_EQ(router->route(input).expert.max().item<int64_t>(), 0);
  EXPECT_TRUE(requested.empty());
  router_with(GetParam(), {{"ties", "random"}})->route(input);
  EXPECT_EQ(requested, (std::set<std::string>{"ties"}));
}

// Without ties the setting changes nothing, not one bit.
TEST_P(TiesOf, DifferentScoresAreChosenAsEver) {
  const auto lowest = router_with(GetParam(), {{"k", 3}}),
             random = router_with(GetParam(), {{"k", 3}, {"ties", "random"}});
  for (const auto& router : {lowest, random}) {
    const torch::NoGradGuard no_grad;
    int seed = 5;
    for (at::Tensor& p : router->parameters()) p.copy_(test::random_tensor(p.sizes(), ++seed, torch::kFloat));
  }
  const RouterInput input = test::token_batch(test::random_tensor({70, kWidth}, 2, torch::kFloat));
  const Routing a = lowest->route(input), b = random->route(input);
  EXPECT_TRUE(torch::equal(a.expert, b.expert));
  EXPECT_TRUE(torch::equal(a.gate, b.gate));
}

INSTANTIATE_TEST_SUITE_P(Routers, TiesOf, ::testing::Values("softmax_topk", "cosine", "noisy_topk", "per_image"),
                         [](const auto& info) { return info.param; });

}  // namespace sparsight::ties_test
