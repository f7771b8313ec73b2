#include <gtest/gtest.h>

#include <cmath>

#include <torch/types.h>

#include "sparsight/papers/gmoe/theory/branch_program.h"
#include "sparsight/papers/gmoe/theory/set_network.h"

namespace sparsight::gmoe::theory_training_test {

TEST(GmoeTheory, TheSetsHaveTheirMaximumAndMean) {
  const SetSamples samples = sample_sets(2000, 0.25, 3, "train");
  EXPECT_TRUE(torch::equal(std::get<0>(samples.invariant.max(1)), samples.target));
  EXPECT_GE(samples.invariant.min().item<double>(), 0);
  const at::Tensor apart = (samples.spurious.mean(1) - samples.target).abs() > 1e-5;
  // A share of 0.25 is independent: standard error sqrt(0.25 * 0.75 / 2000) = 0.0097.
  EXPECT_NEAR(apart.to(torch::kDouble).mean().item<double>(), 0.25, 0.04);
  const at::Tensor spread = samples.spurious - samples.spurious.mean(1, true);
  EXPECT_NEAR(spread.pow(2).sum(1).mean().item<double>() / 7, 0.09, 0.004);  // 0.3² with 7 degrees of freedom
}

// Section 8.3 A: measured there with other random numbers.
TEST(GmoeTheory, G59_ThePoolingDecidesWhichCorrelationIsLearned) {
  const SetErrors max = train_on_sets({.pooling = SetPooling::max}),
                  mean = train_on_sets({.pooling = SetPooling::mean});
  EXPECT_LT(max.in_distribution, 0.02);
  EXPECT_LT(max.shifted, 0.02);
  EXPECT_LT(mean.in_distribution, 0.02);
  EXPECT_GT(mean.shifted, 0.3);
}

TEST(GmoeTheory, TheBranchesHaveTheirShares) {
  for (const std::vector<double>& shares : {kTrainShares, kEqualShares}) {
    const BranchSamples samples = sample_branches(20000, shares, 5, "train");
    for (int64_t j = 0; j < 4; ++j)
      EXPECT_NEAR((samples.branch == j).to(torch::kDouble).mean().item<double>(), shares[static_cast<size_t>(j)],
                  0.014);
  }
  // With equal shares the inputs are N(0, I).
  const BranchSamples equal = sample_branches(50000, kEqualShares, 5, "test");
  const at::Tensor x = equal.inputs.to(torch::kDouble);
  EXPECT_LT(x.mean(0).abs().max().item<double>(), 0.02);
  EXPECT_LT((x.t().matmul(x) / 50000 - torch::eye(16, torch::kDouble)).abs().max().item<double>(), 0.03);
}

// Its error falls below that of the mean of the targets, and settings decide the bits.
TEST(GmoeTheory, AnMoeLayerLearnsTheBranches) {
  const BranchTraining training{.experts = 4, .samples = 4000, .steps = 600, .test_samples = 4000};
  const BranchErrors errors = train_on_branches(training);
  EXPECT_LT(errors.in_distribution, 0.5);
  EXPECT_LT(errors.shifted, 0.8);
  EXPECT_EQ(train_on_branches(training).shifted, errors.shifted);
}

// Section 8.3 B: over four seeds, the smallest error under the shift of 2, 4 and 8 experts is below that of 1 and
// of 16. It is at most that of 4, the number of branches.
TEST(GmoeTheory, G60_NeitherOneExpertNorManyAreBestUnderTheShift) {
  const auto shifted = [](int64_t experts) {
    double mean = 0;
    for (uint64_t seed = 0; seed < 4; ++seed)
      mean += train_on_branches({.experts = experts, .samples = 16000, .steps = 4000, .seed = seed}).shifted / 4;
    return mean;
  };
  const double one = shifted(1), four = shifted(4), sixteen = shifted(16);
  EXPECT_LT(four, one);
  EXPECT_LT(four, sixteen);
}

}  // namespace sparsight::gmoe::theory_training_test
