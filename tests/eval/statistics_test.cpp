// Expected values are computed by hand or with SciPy 1.17; the comment has the call.
#include "sparsight/eval/statistics.h"

#include <cmath>

#include <gtest/gtest.h>

namespace sparsight::statistics_test {

TEST(Statistics, MeanDeviationAndErrorOfFourValues) {
  const std::vector<double> values = {1, 2, 4, 5};  // mean 3, squares 4 + 1 + 1 + 4 = 10
  EXPECT_DOUBLE_EQ(mean(values), 3);
  EXPECT_DOUBLE_EQ(standard_deviation(values), std::sqrt(10.0 / 3));
  EXPECT_DOUBLE_EQ(standard_deviation(values, 0), std::sqrt(2.5));
  EXPECT_DOUBLE_EQ(standard_error(values), std::sqrt(10.0 / 3) / 2);
}

TEST(Statistics, TooFewValuesAreABug) {
  EXPECT_THROW(mean({}), std::logic_error);
  EXPECT_THROW(standard_deviation({1}), std::logic_error);
  EXPECT_DOUBLE_EQ(standard_deviation({1}, 0), 0);
  EXPECT_THROW(paired_difference({1}, {2}), std::logic_error);
  EXPECT_THROW(paired_difference({1, 2}, {2}), std::logic_error);
  EXPECT_THROW(wilson_interval(2, 1), std::logic_error);
  EXPECT_THROW(wilson_interval(0, 0), std::logic_error);
}

TEST(Statistics, WilsonByHandAndAtTheEnds) {
  // z = 1.959964, z² = 3.841459. Centre 0.8 + z²/20 = 0.992073, half z sqrt(0.016 + z²/400) = z sqrt(0.0256036) =
  // 0.313617, both over 1 + z²/10 = 1.384146: 0.716740 -+ 0.226578.
  const Interval few = wilson_interval(8, 10);
  EXPECT_NEAR(few.low, 0.490162, 1e-6);
  EXPECT_NEAR(few.high, 0.943318, 1e-6);
  // binomtest(9760, 10000).proportion_ci(method="wilson")
  const Interval many = wilson_interval(9760, 10000);
  EXPECT_NEAR(many.low, 0.972812522524579, 1e-12);
  EXPECT_NEAR(many.high, 0.9788219110265368, 1e-12);
  // All right: 1 / (1 + z²) and exactly 1; none right: its mirror image.
  const Interval all = wilson_interval(1, 1), none = wilson_interval(0, 1);
  EXPECT_NEAR(all.low, 0.20654931437723745, 1e-12);
  EXPECT_EQ(all.high, 1);
  EXPECT_EQ(none.low, 0);
  EXPECT_NEAR(none.high, 1 - all.low, 1e-12);
  EXPECT_GT(wilson_interval(8, 10, 0.99).high, few.high);
}

TEST(Statistics, McNemarOfFewImagesIsTheBinomialTest) {
  // 2 (C(12,0) + C(12,1) + C(12,2)) / 2^12 = 2 (1 + 12 + 66) / 4096 = 158 / 4096
  const McNemar test = mcnemar(10, 2);
  EXPECT_TRUE(test.exact);
  EXPECT_FALSE(test.statistic.has_value());
  EXPECT_DOUBLE_EQ(test.p_value, 158.0 / 4096);
  EXPECT_DOUBLE_EQ(mcnemar(2, 10).p_value, 158.0 / 4096);
  EXPECT_DOUBLE_EQ(mcnemar(0, 0).p_value, 1);
  EXPECT_DOUBLE_EQ(mcnemar(3, 3).p_value, 1);  // 2 (1 + 6 + 15 + 20) / 64 is above 1
  EXPECT_DOUBLE_EQ(mcnemar(0, 24).p_value, std::ldexp(1, -23));
}

TEST(Statistics, McNemarOfManyIsChiSquareWithContinuityCorrection) {
  // Approval of a prime minister in two surveys (Agresti, Categorical Data Analysis): 150 and 86 changed their minds.
  // (|150 - 86| - 1)² / 236 = 3969 / 236; chi2.sf(3969 / 236, 1)
  const McNemar test = mcnemar(150, 86);
  EXPECT_FALSE(test.exact);
  EXPECT_DOUBLE_EQ(*test.statistic, 3969.0 / 236);
  EXPECT_NEAR(test.p_value, 4.114562281345944e-05, 1e-16);
  EXPECT_TRUE(mcnemar(12, 12).exact);
  EXPECT_FALSE(mcnemar(13, 12).exact);
  EXPECT_DOUBLE_EQ(mcnemar(13, 12).p_value, 1);  // distance 1 - 1
  EXPECT_DOUBLE_EQ(*mcnemar(20, 20).statistic, 0);
}

// Hours of sleep gained with two drugs (Student 1908). ttest_rel(a, b) and its confidence_interval().
TEST(Statistics, PairedDifferenceOfStudentsSleepers) {
  const std::vector<double> a = {0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0},
                            b = {1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};
  const PairedDifference d = paired_difference(a, b);
  EXPECT_EQ(d.pairs, 10);
  EXPECT_NEAR(d.mean, -1.58, 1e-12);
  // squares of the differences 1.2 2.4 1.3 1.3 0 1 1.8 0.8 4.6 1.4 sum to 38.58; 38.58 - 10 x 1.58² = 13.616, over 9
  EXPECT_NEAR(d.standard_deviation, std::sqrt(13.616 / 9), 1e-12);
  EXPECT_NEAR(d.standard_error, std::sqrt(13.616 / 90), 1e-12);
  EXPECT_NEAR(d.interval.low, -2.459885763276983, 1e-10);
  EXPECT_NEAR(d.interval.high, -0.7001142367230175, 1e-10);
  EXPECT_NEAR(d.p_value, 0.002832890197384273, 1e-12);
}

TEST(Statistics, PairsThatNeverDiffer) {
  const PairedDifference same = paired_difference({1, 2, 3}, {1, 2, 3}), shifted = paired_difference({2, 3}, {1, 2});
  EXPECT_EQ(same.p_value, 1);
  EXPECT_EQ(same.interval.low, 0);
  EXPECT_EQ(same.interval.high, 0);
  EXPECT_EQ(shifted.p_value, 0);
  EXPECT_EQ(shifted.mean, 1);
}

TEST(Statistics, QuantilesAreThoseOfTheTables) {
  // t.ppf(.975, n), t.cdf(1.5, n)
  const struct {
    double degrees, quantile, below;
  } cases[] = {{1, 12.706204736174694, 0.8128329581890011}, {2, 4.302652729749462, 0.8638034375544994},
               {5, 2.5705818356363146, 0.9030481598787634}, {9, 2.262157162798205, 0.9160746719714625},
               {30, 2.0422724563012378, 0.927967035435677}, {999, 1.9623414611334493, 0.9330348226443576}};
  for (const auto& c : cases) {
    EXPECT_NEAR(student_t_quantile(0.975, c.degrees), c.quantile, 1e-10 * c.quantile) << c.degrees;
    EXPECT_NEAR(student_t_quantile(0.025, c.degrees), -c.quantile, 1e-10 * c.quantile) << c.degrees;
    EXPECT_NEAR(student_t_cdf(1.5, c.degrees), c.below, 1e-10) << c.degrees;
    EXPECT_NEAR(student_t_cdf(-1.5, c.degrees), 1 - c.below, 1e-10) << c.degrees;
  }
  EXPECT_NEAR(student_t_quantile(0.5, 3), 0, 1e-12);
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-12);   // norm.ppf(.975)
  EXPECT_NEAR(normal_quantile(1e-9), -5.9978070150076865, 1e-11);  // norm.ppf(1e-9)
  EXPECT_DOUBLE_EQ(normal_cdf(0), 0.5);
}

}  // namespace sparsight::statistics_test
