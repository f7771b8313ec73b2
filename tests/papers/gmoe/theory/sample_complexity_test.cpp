#include "sparsight/papers/gmoe/theory/sample_complexity.h"

#include <gtest/gtest.h>

namespace sparsight::gmoe::sample_complexity_test {

// Trial t of 0 .. 9 succeeds from 10 + t samples on: nine of ten from 18 on. Doubling: 1, 2, 4, 8, 16 (seven succeed),
// 32; bisecting: 24, 20, 18, 17.
TEST(SampleComplexity, DoublesAndBisects) {
  const SampleComplexity found = sample_complexity(
      {.trials = 10, .delta = 0.1}, [](int64_t samples, int64_t trial) { return samples >= 10 + trial; });
  EXPECT_EQ(found.samples, 18);
  std::vector<int64_t> tried;
  for (const SuccessShare& share : found.curve) tried.push_back(share.samples);
  EXPECT_EQ(tried, (std::vector<int64_t>{1, 2, 4, 8, 16, 17, 18, 20, 24, 32}));
  EXPECT_DOUBLE_EQ(found.curve[4].share, 0.7);
}

TEST(SampleComplexity, IsNullWhereNothingSucceeds) {
  const SampleComplexity found =
      sample_complexity({.trials = 3, .largest = 100}, [](int64_t, int64_t) { return false; });
  EXPECT_FALSE(found.samples);
  EXPECT_EQ(found.curve.back().samples, 100);
}

// Without noise `width` samples determine the weights. With noise the expected squared error of least squares is
// noise² width / (samples - width - 1): 0.25 * 8 / (59 - 9) = 0.04.
TEST(SampleComplexity, G61_ALinearTargetHasAMonotoneCurveAndAFiniteNumber) {
  EXPECT_LT(linear_target_error(8, 0, 8, 1), 1e-9);
  EXPECT_GT(linear_target_error(8, 0, 7, 1), 1e-3);
  double squares = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const double error = linear_target_error(8, 0.5, 59, seed);
    squares += error * error / 400;
  }
  EXPECT_NEAR(squares, 0.04, 0.004);  // 4 standard errors: 0.04 sqrt(2 / 8 / 400)

  const SampleComplexity found = sample_complexity({.trials = 100}, [](int64_t samples, int64_t trial) {
    return linear_target_error(8, 0.5, samples, static_cast<uint64_t>(trial)) <= 0.2;
  });
  ASSERT_TRUE(found.samples);
  EXPECT_GT(*found.samples, 59);  // where the error is 0.2 on average, half of the trainings fail
  EXPECT_LT(*found.samples, 120);
  // From never to nearly always, and up all the way: 100 trials have a standard error of at most 0.05, of which one is
  // allowed where shares near 0 or 1 stay the same.
  ASSERT_GE(found.curve.size(), 8u);
  EXPECT_EQ(found.curve.front().share, 0);
  // With 128 samples the expected square is 0.25 * 8 / 119 = 0.0168, so an error above 0.2 is a chi-squared value of 8
  // degrees above 8 * 0.04 / 0.0168 = 19: 1.5 % of trainings, and 4 standard errors of 1.2 %.
  EXPECT_EQ(found.curve.back().samples, 128);
  EXPECT_GE(found.curve.back().share, 1 - 0.015 - 0.048);
  for (size_t i = 1; i < found.curve.size(); ++i)
    EXPECT_GE(found.curve[i].share, found.curve[i - 1].share - 0.05) << found.curve[i].samples;
  for (const SuccessShare& point : found.curve) {
    if (point.samples < *found.samples)
      EXPECT_LT(point.share, 0.9) << point.samples;
    else
      EXPECT_GE(point.share, 0.85) << point.samples;
  }
}

}  // namespace sparsight::gmoe::sample_complexity_test
