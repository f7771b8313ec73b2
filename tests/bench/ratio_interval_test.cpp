// Intervals of medians, with coverages by hand from the binomial distribution.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "bench/measure/ratio_interval.h"

namespace sparsight::ratio_interval_test {
namespace {

using bench::MedianInterval;

std::vector<double> up_to(int n) {
  std::vector<double> values;
  for (int i = n; i >= 1; --i) values.push_back(i);  // unsorted on purpose
  return values;
}

}  // namespace

TEST(RatioInterval, MedianOfOddAndEvenCounts) {
  EXPECT_EQ(bench::median({3, 1, 2}), 2);
  EXPECT_EQ(bench::median({4, 1, 3, 2}), 2.5);
}

// 1 - 2 / 2^7 = 0.984; without the outer two: 1 - 2 (1 + 7) / 2^7 = 0.875 would be too little.
TEST(RatioInterval, SevenValuesNeedAllOfThem) {
  const MedianInterval interval = bench::median_interval(up_to(7));
  EXPECT_EQ(interval.median, 4);
  EXPECT_EQ(interval.low, 1);
  EXPECT_EQ(interval.high, 7);
  EXPECT_DOUBLE_EQ(interval.coverage, 1 - 2.0 / 128);
}

// 1 - 2 (1 + 15 + 105 + 455) / 2^15 = 0.965: the fourth from either end; with C(15,4) = 1365 more 0.882.
TEST(RatioInterval, FifteenValuesLeaveOutThreeOnEitherSide) {
  const MedianInterval interval = bench::median_interval(up_to(15));
  EXPECT_EQ(interval.low, 4);
  EXPECT_EQ(interval.high, 12);
  EXPECT_NEAR(interval.coverage, 1 - 2.0 * 576 / 32768, 1e-12);
}

// 6 values: 1 - 2 / 64 = 0.969. 5: 1 - 2 / 32 = 0.9375, which is below 95 %. 1: nothing is known.
TEST(RatioInterval, FewValuesSayWhatTheyCover) {
  EXPECT_DOUBLE_EQ(bench::median_interval(up_to(6)).coverage, 0.96875);
  const MedianInterval five = bench::median_interval(up_to(5));
  EXPECT_DOUBLE_EQ(five.coverage, 0.9375);
  EXPECT_EQ(five.low, 1);
  EXPECT_EQ(five.high, 5);
  EXPECT_EQ(bench::median_interval({2.0}).coverage, 0);
  EXPECT_EQ(bench::interval_note(7), "95 % interval of the median (order statistics of 7 rounds; covers 98.4 %)");
  EXPECT_EQ(bench::interval_note(5), "widest interval of the median (order statistics of 5 rounds; covers 93.8 %)");
}

// Ratios 0.5, 0.5, 0.25, 0.5, 0.25. The ratio of the medians would be 2 / 8.
TEST(RatioInterval, RatiosAreTakenRoundByRound) {
  const MedianInterval ratio = bench::ratio_interval({2, 3, 2, 6, 2}, {4, 6, 8, 12, 8});
  EXPECT_EQ(ratio.median, 0.5);
  EXPECT_EQ(ratio.low, 0.25);
  EXPECT_EQ(ratio.high, 0.5);
  EXPECT_EQ(bench::text(ratio), "0.50 [0.25, 0.50]");
}

}  // namespace sparsight::ratio_interval_test
