// Each claim: the number that it measures, a table for which it holds, one for which it does not, and one that leaves
// it open.
#include "sparsight/reproduce/figure_claims.h"

#include <gtest/gtest.h>

#include "tests/reproduce/curve_table.h"

namespace sparsight::figure_claims_test {
namespace {

using testing::curve_table;

const CurvePair kPair{"ours", "theirs"};

TEST(FigureClaims, Bounds) {
  const ResultTable table = curve_table({{"a", 1, 2}, {"a", 2, 5}, {"b", 1, 9}});
  const Claim least = all_at_least(table, "t", "accuracy", 2, {{"model", "a"}});
  EXPECT_EQ(least.measured, "the minimum of 2 is 2");
  EXPECT_EQ(least.holds, true);
  EXPECT_EQ(all_at_least(table, "t", "accuracy", 2.1).holds, false);
  EXPECT_EQ(all_at_most(table, "t", "accuracy", 9).measured, "the maximum of 3 is 9");
  EXPECT_EQ(all_at_most(table, "t", "accuracy", 8.9).holds, false);
  EXPECT_FALSE(all_at_most(table, "t", "accuracy", 9, {{"model", "c"}}).holds);
}

TEST(FigureClaims, AboveEverywhere) {
  const Claim above = above_everywhere(
      curve_table({{"ours", 1, 62.5}, {"theirs", 1, 60}, {"ours", 2, 71}, {"theirs", 2, 70}}), "t", kPair);
  EXPECT_EQ(above.measured, "at least 1.0 points (at 2 samples)");
  EXPECT_EQ(above.holds, true);
  const ResultTable tie = curve_table({{"ours", 1, 60}, {"theirs", 1, 60}});
  EXPECT_EQ(above_everywhere(tie, "t", kPair).holds, false);
  EXPECT_EQ(above_everywhere(tie, "t", kPair, /*ties_count=*/true).holds, true);
  const Claim missing = above_everywhere(
      curve_table({{"ours", 1, 62}, {"theirs", 1, 60}, {"ours", 2, 71}, {"theirs", 2, std::nullopt}}), "t", kPair);
  EXPECT_FALSE(missing.holds) << "one point is missing";
  EXPECT_EQ(missing.measured, "not measured");
}

// Theirs rises from 50 to 90 between 100 and 300: 70 % at 200. Ours has 60 at 100 and 80 at 200: 70 % at 150.
TEST(FigureClaims, ReachedWithShare) {
  const ResultTable table =
      curve_table({{"theirs", 100, 50}, {"theirs", 300, 90}, {"ours", 100, 60}, {"ours", 200, 80}});
  const Claim claim = reached_with_share(table, "t", kPair, 70, 0.75);
  EXPECT_EQ(claim.measured, "150 of 200 samples: 75 %");
  EXPECT_EQ(claim.holds, true);
  EXPECT_EQ(reached_with_share(table, "t", kPair, 70, 0.74).holds, false);
  EXPECT_EQ(reached_with_share(table, "t", kPair, 55, 0.9).measured, "at most 100 of 125 samples: 80 %");
  const Claim beyond = reached_with_share(table, "t", kPair, 95, 0.6);
  EXPECT_EQ(beyond.measured, "theirs does not reach it here");
  EXPECT_FALSE(beyond.holds);
  // 90 % takes theirs 300. Ours was measured up to 200: too few for 80 % of 300 to be said, enough for 60 %.
  EXPECT_EQ(reached_with_share(table, "t", kPair, 90, 0.8).measured, "ours does not reach 90.0 %");
  EXPECT_FALSE(reached_with_share(table, "t", kPair, 90, 0.8).holds);
  EXPECT_EQ(reached_with_share(table, "t", kPair, 90, 0.6).holds, false);
  EXPECT_FALSE(reached_with_share(curve_table({{"ours", 1, 5}}), "t", kPair, 5, 1).holds);
}

// Without a level it is what theirs reaches with most samples: 65 % with 200, of which ours needs 150.
TEST(FigureClaims, ReachedWithShareOfTheLast) {
  const ResultTable table = curve_table({{"theirs", 200, 65}, {"ours", 100, 61}, {"ours", 200, 69}});
  const Claim claim = reached_with_share(table, "t", kPair, std::nullopt, 0.8);
  EXPECT_EQ(claim.measured, "65.0 % with 150 of 200 samples: 75 %");
  EXPECT_EQ(claim.holds, true);
}

TEST(FigureClaims, LargerGap) {
  const ResultTable table =
      curve_table({{"ours", 1, 90}, {"theirs", 1, 10}, {"ours", 2, 75}, {"theirs", 2, 70}, {"x", 2, 64}, {"y", 2, 60}});
  const Claim larger = larger_gap(table, "t", kPair, {"x", "y"});
  EXPECT_EQ(larger.measured, "5.0 points against 4.0 with 2 samples");
  EXPECT_EQ(larger.holds, true);
  EXPECT_EQ(larger_gap(table, "t", {"x", "y"}, kPair).holds, false);
  EXPECT_FALSE(larger_gap(table, "t", kPair, {"x", "z"}).holds);
}

TEST(FigureClaims, RatioAtLeast) {
  const ResultTable table = curve_table(
      {{"ours", 1, 10}, {"theirs", 1, 16}, {"ours", 2, 10}, {"theirs", 2, 20}, {"ours", 3, 0}, {"theirs", 3, 20}});
  const Claim claim = min_ratio(table, "t", kPair, 1.6);
  EXPECT_EQ(claim.measured, "ratios 1.60 with 1, 2.00 with 2");
  EXPECT_EQ(claim.holds, true);
  EXPECT_EQ(min_ratio(table, "t", kPair, 1.7).holds, false);
  EXPECT_FALSE(min_ratio(curve_table({{"ours", 1, 1}}), "t", kPair, 1).holds);
}

TEST(FigureClaims, BetweenEnds) {
  const ResultTable table = curve_table({{"a", 1, 10}, {"b", 1, 20}, {"a", 2, 0}, {"a", 3, 40}, {"b", 3, 60}});
  const Claim rises = rises_between_ends(table, "t", "samples", "accuracy");
  EXPECT_EQ(rises.measured, "15 % at 1, 50 % at 3 samples");
  EXPECT_EQ(rises.holds, true);
  EXPECT_EQ(falls_between_ends(table, "t", "samples", "accuracy").holds, false);
  EXPECT_FALSE(rises_between_ends(curve_table({{"a", 1, 10}}), "t", "samples", "accuracy").holds);
}

}  // namespace
}  // namespace sparsight::figure_claims_test
