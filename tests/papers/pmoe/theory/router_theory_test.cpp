// The paper's results about the routers of separate training, on samples of its data distribution.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "sparsight/core/error.h"
#include "sparsight/papers/pmoe/theory/router_gradient.h"
#include "sparsight/papers/pmoe/theory/router_start.h"
#include "sparsight/papers/pmoe/theory/router_training.h"
#include "sparsight/reproduce/log_slope.h"

namespace sparsight::pmoe::router_theory_test {
namespace {

double distance(const at::Tensor& a, const at::Tensor& b) { return (a - b).norm().item<double>(); }

}  // namespace

// Two samples of two patches: y = +1 and -1. -(1, 0) - (0, 1) and +(0, 1) + (1, 0).
TEST(RouterGradient, ByHand) {
  PatternSamples samples;
  samples.patches = torch::tensor({1., 0., 0., 1., 0., 1., 1., 0.}, torch::kDouble).view({2, 2, 2});
  samples.labels = torch::tensor({0, 1}, torch::kLong);
  EXPECT_TRUE(router_gradients(samples).equal(torch::tensor({{-1., -1.}, {1., 1.}}, torch::kDouble)));
}

TEST(RouterGradient, P65_MeanIsHalfTheDifferenceOfThePatterns) {
  PatternModelOptions alone = easy_patterns(1);  // no irrelevant patch: exactly
  alone.patches = 1;
  EXPECT_LT(router_gradient_deviation(PatternModel(alone), "train", 10), 1e-14);
  // Fifteen irrelevant unit vectors with balanced labels: each sample adds at most 15 to the variance.
  const PatternModel model(easy_patterns(1));
  for (const int64_t count : {400, 1600, 6400})
    EXPECT_LT(router_gradient_deviation(model, "train", count), 1.5 * std::sqrt(15. / static_cast<double>(count)));
}

TEST(RouterGradient, P67_SpreadOfBatchesFallsWithTheRootOfTheirSize) {
  const at::Tensor gradients = router_gradients(PatternModel(easy_patterns(2)).sample("train", 4096));
  std::vector<std::pair<double, double>> points;
  for (const int64_t size : {4, 16, 64, 256})
    points.emplace_back(static_cast<double>(size), batch_gradient_deviation(gradients, size, 1));
  EXPECT_NEAR(log_log_slope(points), -0.5, 0.05);
  EXPECT_THROW(batch_gradient_deviation(gradients, 4096, 1), UsageError);
}

// The specification's example: n = 16, d = 784 give 5.03e-5 and a norm of about 1.4e-3 against 1/256.
TEST(RouterStart, P66_NormsAreBelowOneOverNSquared) {
  EXPECT_NEAR(router_start_std(16, 784), 5.03e-5, 0.01e-5);
  const RouterStart start = router_start(16, 784, 2000, 1);
  EXPECT_EQ(start.within, 1);
  EXPECT_NEAR(start.mean_norm, 1.41e-3, 0.01e-3);
  EXPECT_EQ(start.bound, 1. / 256);
  EXPECT_EQ(router_start(4, 64, 2000, 1).within, 1);
  // ln 2 < 1: with two patches the norm is about 1 / (4 ln 2), above 1/4.
  EXPECT_LT(router_start(2, 64, 2000, 1).within, 0.01);
  EXPECT_THROW(router_start_std(1, 8), UsageError);
}

// Samples of whole epochs: the closed form w_1(0) - eta E (N/B) (mean gradient), w_2 the other way.
TEST(RouterTraining, P16_WholeEpochsAreTheClosedForm) {
  const PatternSamples samples = PatternModel(easy_patterns(3)).sample("train", 60);
  RouterTrainingOptions options;
  options.batch = 20;
  options.steps = 0;
  const at::Tensor start = train_routers(samples, options).clone();
  options.steps = 12;  // four epochs
  options.rate = 0.3;
  const at::Tensor trained = train_routers(samples, options), step = 0.3 * 12 * router_gradients(samples).mean(0);
  EXPECT_LT(distance(trained[0], start[0] - step), 1e-12);
  EXPECT_LT(distance(trained[1], start[1] + step), 1e-12);
}

// Scores of expert 0: 1, 3, 3 with the pattern second: none is larger, the tie comes later. Of expert 1: the pattern
// is last, after a larger score and an equal one.
TEST(RouterTraining, RanksByHand) {
  PatternSamples samples;
  samples.patches = torch::tensor({1., 3., 3., 5., 2., 2.}, torch::kDouble).view({2, 3, 1});
  samples.labels = torch::tensor({0, 1}, torch::kLong);
  samples.position = torch::tensor({1, 2}, torch::kLong);
  const at::Tensor ranks = pattern_ranks(samples, torch::ones({2, 1}, torch::kDouble));
  EXPECT_TRUE(ranks.equal(torch::tensor({0, 2}, torch::kLong)));
  EXPECT_EQ(routed_share(ranks, 1), 0.5);
  EXPECT_EQ(routed_share(ranks, 3), 1);
}

// Reference values of the specification (quick independent runs of the paper's formulas): HARD, eta = 1/n, 400 steps,
// batches of min(N, 256): 0.51 for l <= 5 and 1.00 for l >= 6 from 200 samples on. EASY needs one patch.
TEST(RouterTraining, P68_PatternsAreRoutedFromLStarOn) {
  const PatternModel hard(hard_patterns(1)), easy(easy_patterns(1));
  const PatternSamples hard_test = hard.sample("test", 1000), easy_test = easy.sample("test", 1000);
  const at::Tensor of_hard = train_routers(hard.sample("train", 200), {}),
                   of_easy = train_routers(easy.sample("train", 800), {});
  const at::Tensor ranks = pattern_ranks(hard_test, of_hard);
  for (int64_t l = 1; l <= 5; ++l) EXPECT_NEAR(routed_share(ranks, l), 0.5, 0.06) << l;
  EXPECT_GT(routed_share(ranks, 6), 0.995);
  EXPECT_GT(clear_share(hard_test, of_hard, hard.patterns(), 0.5), 0.995);
  EXPECT_GT(routed_share(pattern_ranks(easy_test, of_easy), 1), 0.98);
  EXPECT_GT(clear_share(easy_test, of_easy, easy.patterns(), 0), 0.98);
}

}  // namespace sparsight::pmoe::router_theory_test
