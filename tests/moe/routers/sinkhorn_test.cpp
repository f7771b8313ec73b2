#include "sparsight/moe/routers/sinkhorn.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/moe/routers/token_batch.h"
#include "tests/moe/shazeer_example.h"
#include "tests/support/gradcheck.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::sinkhorn_test {

class Sinkhorn : public ::testing::TestWithParam<at::ScalarType> {};

// exp(logits) = (4 1; 2 2). One iteration: rows divided by their sums 5 and 4 are (.8 .2; .5 .5), with column sums 1.3
// and 0.7, which should be 1: offsets -ln 1.3 and -ln 0.7.
TEST_P(Sinkhorn, OneIterationByHand) {
  const double tol = GetParam() == torch::kDouble ? 1e-12 : 1e-6;
  const at::Tensor logits = test::table({{4, 1}, {2, 2}}).log().to(GetParam());
  EXPECT_TRUE(
      test::near(sinkhorn_offsets(logits, 1), torch::tensor({-std::log(1.3), -std::log(0.7)}, torch::kDouble), tol));
  EXPECT_TRUE(test::near(sinkhorn_offsets(logits, 0), torch::zeros({2}), 0));
  // Token 1 is indifferent, so the balanced scores give it to expert 1; the gate knows of no offsets.
  const Routing r = route_sinkhorn(logits, sinkhorn_offsets(logits, 1), 1, "softmax");
  EXPECT_TRUE(torch::equal(r.expert, torch::tensor({0, 1}, torch::kLong)));
  EXPECT_TRUE(test::near(r.gate, torch::tensor({0.8, 0.5}, torch::kDouble), tol));
  const Routing greedy = route_sinkhorn(logits, {}, 1, "sigmoid");
  EXPECT_TRUE(torch::equal(greedy.expert, torch::tensor({0, 0}, torch::kLong)));
  EXPECT_TRUE(test::near(greedy.gate, torch::tensor({4. / 5, 2. / 3}, torch::kDouble), tol));  // v / (v + 1)
  EXPECT_EQ(greedy.gate.scalar_type(), GetParam());
}

TEST_P(Sinkhorn, IterationsBalanceTheSoftmax) {
  at::Tensor logits = test::random_tensor({100, 5}, 1).to(GetParam());
  logits = logits + torch::linspace(0, 4, 5, GetParam());
  const auto column_sums = [&](int64_t iterations) {
    return (logits + sinkhorn_offsets(logits, iterations)).softmax(1).sum(0);
  };
  EXPECT_GT(column_sums(0).max().item<double>(), 50);
  EXPECT_TRUE(test::near(column_sums(200), torch::full({5}, 20.0), 1e-3));
}

INSTANTIATE_TEST_SUITE_P(Types, Sinkhorn, ::testing::Values(torch::kFloat, torch::kDouble));

TEST(SinkhornRouter, TrainingIsNearlyBalancedAndEvaluationTakesTheLargestLogits) {
  SinkhornOptions options;
  options.temperature = 0.1;
  SinkhornRouter router(options, {6, 4});
  initialize(router, 1);
  {
    const torch::NoGradGuard no_grad;
    router.weight.mul_(50);
    router.weight[0] += 0.5;
  }
  const at::Tensor x = test::random_tensor({2000, 6}, 2, torch::kFloat) + 0.5;
  const Routing r = router.route(test::token_batch(x));
  EXPECT_TRUE(test::near(r.chosen_count.to(torch::kDouble) / 500, torch::ones({4}), 0.2));
  const Routing greedy = router.route(test::evaluated(test::token_batch(x)));
  EXPECT_TRUE(torch::equal(greedy.expert, greedy.clean_logits.argmax(1)));
  EXPECT_GT(greedy.chosen_count.max().item<double>() / 500, 1.2);
}

TEST(SinkhornRouter, NanAndPaddingDoNotReachOtherTokens) {
  at::Tensor logits = test::random_tensor({10, 3}, 1);
  logits[4][1] = NAN;
  const Routing r = route_sinkhorn(logits, sinkhorn_offsets(logits, 10), 3, "softmax");
  EXPECT_EQ(r.expert[4 * 3 + 2].item<int64_t>(), 1);  // NaN ranks last
  EXPECT_TRUE(torch::isfinite(sinkhorn_offsets(logits, 10)).all().item<bool>());
  EXPECT_TRUE((sinkhorn_offsets(torch::zeros({0, 3}), 5) == 0).all().item<bool>());
}

TEST(SinkhornRouter, GatesHaveTheRightGradients) {
  at::Tensor clean = test::random_tensor({6, 4}, 1);
  const at::Tensor upstream = test::random_tensor({12}, 2);
  for (const std::string gate : {"softmax", "sigmoid"}) {
    const auto loss = [&] {
      return (route_sinkhorn(clean, sinkhorn_offsets(clean, 5), 2, gate).gate * upstream).sum();
    };
    EXPECT_LT(test::gradient_error(loss, {clean}), 1e-8);
  }
}

}  // namespace sparsight::sinkhorn_test
