// Routers that learn nothing, and the dense one.
#include <set>

#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "sparsight/moe/routers/dense_softmax.h"
#include "sparsight/moe/routers/hash.h"
#include "sparsight/moe/routers/random.h"
#include "sparsight/moe/routers/round_robin.h"
#include "tests/moe/routers/token_batch.h"
#include "tests/moe/shazeer_example.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::fixed_routers_test {
namespace {

template <class Options>
Options with_k(int64_t k) {
  Options options;
  options.k = k;
  return options;
}

// The shares of `counts` differ from 1/E by less than four standard errors of n samples.
void expect_even(const at::Tensor& counts, int64_t n) {
  const auto experts = static_cast<double>(counts.size(0));
  const double p = 1 / experts, error = std::sqrt(p * (1 - p) / static_cast<double>(n));
  EXPECT_TRUE(test::near(counts.to(torch::kDouble) / counts.sum(), torch::full({counts.size(0)}, p), 4 * error));
}

}  // namespace

TEST(Hash, ExpertsAreDistinctEvenAndAFunctionOfTheId) {
  const at::Tensor ids = torch::arange(20000, torch::kLong);
  const at::Tensor experts = hash_experts(ids, 6, 4, 1);
  EXPECT_TRUE(torch::equal(experts, hash_experts(ids, 6, 4, 1)));
  EXPECT_TRUE(torch::equal(experts[77], hash_experts(torch::tensor({77}, torch::kLong), 6, 4, 1)[0]));
  EXPECT_FALSE(torch::equal(experts, hash_experts(ids, 6, 4, 2)));
  EXPECT_TRUE((std::get<0>(experts.sort(1)).diff() > 0).all().item<bool>());
  expect_even(torch::bincount(experts.select(1, 0), {}, 6), 20000);
  expect_even(torch::bincount(experts.select(1, 3), {}, 6), 20000);
}

TEST(Hash, HashesTheIdOrThePositionInTheImage) {
  HashRouter router(with_k<HashOptions>(2), {3, 5});
  const at::Tensor x = torch::zeros({8, 3});
  RouterInput input{x, {2, 4, 0, 2, 2}, "moe", ForwardMode::training(), {1, 2}};
  const Routing by_position = router.route(input);
  EXPECT_TRUE(torch::equal(by_position.expert.slice(0, 0, 8), by_position.expert.slice(0, 8)));  // both images alike
  EXPECT_TRUE(torch::equal(by_position.gate, torch::full({16}, 0.5f)));
  input.context.token_id = torch::tensor({9, 9, 4, 4, 9, 4, 9, 9}, torch::kLong);
  const at::Tensor experts = router.route(input).expert.view({8, 2});
  EXPECT_TRUE(torch::equal(experts[0], experts[1]) && torch::equal(experts[0], experts[7]));
  EXPECT_TRUE(torch::equal(experts[2], experts[5]));
}

TEST(RandomRouting, IsEvenRepeatableAndAnewForEachStep) {
  RandomRouter router(with_k<RandomOptions>(2), {3, 5});
  const at::Tensor x = torch::zeros({10000, 3});
  const Routing a = router.route(test::token_batch(x)), again = router.route(test::token_batch(x)),
                next = router.route(test::token_batch(x, 1));
  EXPECT_TRUE(torch::equal(a.expert, again.expert));
  EXPECT_FALSE(torch::equal(a.expert, next.expert));
  expect_even(a.chosen_count, 10000);
  EXPECT_TRUE(torch::equal(router.route(test::token_batch_of_images(x.slice(0, 0, 50), 123)).expert,
                           a.expert.slice(0, 246, 346)));
}

TEST(RoundRobin, TakesExpertsInTurn) {
  RoundRobinRouter router(with_k<RoundRobinOptions>(2), {3, 5});
  EXPECT_TRUE(torch::equal(router.route(test::token_batch(torch::zeros({4, 3}))).expert,
                           torch::tensor({0, 1, 2, 3, 4, 0, 1, 2}, torch::kLong)));
  EXPECT_TRUE(torch::equal(router.route(test::token_batch_of_images(torch::zeros({1, 3}), 2)).expert,
                           torch::tensor({4, 0}, torch::kLong)));
}

TEST(DenseSoftmax, UsesEveryExpertWithItsProbability) {
  for (const auto type : {torch::kFloat, torch::kDouble}) {
    const Routing r = route_dense_softmax(test::example_logits().to(type));
    EXPECT_TRUE(test::near(test::dense_gates(r),
                           test::table({{0.494362, 0.102337, 0.145223, 0.258079},
                                        {0.050330, 0.204099, 0.677632, 0.067939},
                                        {0.111700, 0.500606, 0.203531, 0.184163}}),
                           test::example_tolerance(type)));
    EXPECT_EQ(r.gate.scalar_type(), type);
    EXPECT_EQ(r.per_token, 4);
  }
}

TEST(FixedRouters, MoreChoicesThanExpertsIsAnError) {
  EXPECT_THROW(HashRouter(with_k<HashOptions>(4), {2, 3}), UsageError);
  EXPECT_THROW(RandomRouter(with_k<RandomOptions>(4), {2, 3}), UsageError);
  EXPECT_THROW(RoundRobinRouter(with_k<RoundRobinOptions>(4), {2, 3}), UsageError);
}

}  // namespace sparsight::fixed_routers_test
