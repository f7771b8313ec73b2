// Each claim: the number that it measures, a table for which it holds, one for which it does not, and one that leaves
// it open.
#include "sparsight/reproduce/figure_claims.h"

#include <gtest/gtest.h>

#include "tests/reproduce/curve_table.h"

namespace sparsight::figure_claims_test {
namespace {

using testing::curve_table;
using testing::CurvePoint;

const CurvePair kPair{"ours", "theirs"};

// A point with two seeds that hardly differ, and one with two that differ by 40.
CurvePoint sure(const std::string& model, int64_t samples, double accuracy) {
  return {model, samples, {accuracy - 0.001, accuracy + 0.001}};
}
CurvePoint unsure(const std::string& model, int64_t samples, double accuracy) {
  return {model, samples, {accuracy - 20, accuracy + 20}};
}

void expect_start(const Claim& claim, const std::string& text) {
  EXPECT_EQ(claim.measured.substr(0, text.size()), text);
}

TEST(FigureClaims, Bounds) {
  const ResultTable table = curve_table({sure("a", 1, 2), sure("a", 2, 5), sure("b", 1, 9)});
  const Claim least = all_at_least(table, "t", "accuracy", 1, {{"model", "a"}});
  expect_start(least, "at least 1.00 above 1 (at samples 1)");
  EXPECT_EQ(least.holds, true);
  EXPECT_EQ(least.seeds, 2);
  EXPECT_EQ(all_at_least(table, "t", "accuracy", 3).holds, false);
  EXPECT_EQ(all_at_most(table, "t", "accuracy", 10).holds, true);
  EXPECT_EQ(all_at_most(table, "t", "accuracy", 8).holds, false);
  EXPECT_FALSE(all_at_most(table, "t", "accuracy", 9, {{"model", "c"}}).holds);
  EXPECT_FALSE(all_at_most(curve_table({unsure("a", 1, 9)}), "t", "accuracy", 10).holds);
}

TEST(FigureClaims, AboveEverywhere) {
  const Claim above = above_everywhere(
      curve_table({sure("ours", 1, 62.5), sure("theirs", 1, 60), sure("ours", 2, 71), sure("theirs", 2, 70)}), "t",
      kPair);
  expect_start(above, "at least 1.0 points (at 2 samples), 95 % interval 1.0 to 1.0");
  EXPECT_EQ(above.holds, true);
  const ResultTable tie = curve_table({sure("ours", 1, 60), sure("theirs", 1, 60)});
  EXPECT_EQ(above_everywhere(tie, "t", kPair).holds, false);
  EXPECT_EQ(above_everywhere(tie, "t", kPair, /*ties_count=*/true).holds, true);
  const Claim missing = above_everywhere(
      curve_table({sure("ours", 1, 62), sure("theirs", 1, 60), sure("ours", 2, 71), {"theirs", 2, {std::nullopt}}}),
      "t", kPair);
  EXPECT_FALSE(missing.holds) << "one point is missing";
  EXPECT_NE(missing.measured.find("not measured at 2 samples"), std::string::npos) << missing.measured;
  EXPECT_EQ(above_everywhere(curve_table({sure("ours", 1, 50), sure("theirs", 1, 60), sure("ours", 2, 71)}), "t", kPair)
                .holds,
            false)
      << "but the other one is below";
}

// The difference whose interval reaches lowest decides, which need not be the least.
TEST(FigureClaims, SayWhichDifferenceDecidesAndWhichIsLeast) {
  const Claim above = above_everywhere(
      curve_table({unsure("ours", 1, 62), sure("theirs", 1, 60), sure("ours", 2, 71), sure("theirs", 2, 70)}), "t",
      kPair);
  expect_start(above, "2.0 points (at 1 samples; the least is 1.0, at 2 samples), 95 % interval -");
  EXPECT_FALSE(above.holds);
}

// The seeds of one model differ by much more than the models do, but on each seed ours is 1 ahead.
TEST(FigureClaims, DifferencesArePairedBySeed) {
  const ResultTable table = curve_table({{"ours", 1, {51.0, 71.1, 90.9}}, {"theirs", 1, {50.0, 70.0, 90.0}}});
  EXPECT_EQ(above_everywhere(table, "t", kPair).holds, true);
  const ResultTable one = curve_table({{"ours", 1, {99.0}}, {"theirs", 1, {50.0}}});
  const Claim open = above_everywhere(one, "t", kPair);
  EXPECT_FALSE(open.holds) << "one seed decides nothing";
  EXPECT_EQ(open.seeds, 1);
  EXPECT_NE(open.measured.find("no interval from 1 seed"), std::string::npos);
}

// Theirs rises from 50 to 90 between 100 and 300: 70 % at 200. Ours has 60 at 100 and 80 at 200: 70 % at 150.
TEST(FigureClaims, ReachedWithShare) {
  const ResultTable table =
      curve_table({sure("theirs", 100, 50), sure("theirs", 300, 90), sure("ours", 100, 60), sure("ours", 200, 80)});
  const Claim claim = reached_with_share(table, "t", kPair, 70, 0.76);
  expect_start(claim, "150 of 200 samples: 75 %");
  EXPECT_EQ(claim.holds, true);
  EXPECT_EQ(reached_with_share(table, "t", kPair, 70, 0.74).holds, false);
  const Claim start = reached_with_share(table, "t", kPair, 55, 0.9);
  expect_start(start, "at most 100 of 125 samples: 80 % (the first point measured)");
  EXPECT_EQ(start.holds, true);
  EXPECT_FALSE(reached_with_share(table, "t", kPair, 55, 0.7).holds) << "it may be less than measured";
  const Claim beyond = reached_with_share(table, "t", kPair, 95, 0.6);
  EXPECT_EQ(beyond.measured, "theirs does not reach it here");
  EXPECT_FALSE(beyond.holds);
  // 90 % takes theirs 300. Ours was measured up to 200: too few for 80 % of 300 to be said, enough for 60 %.
  const Claim never = reached_with_share(table, "t", kPair, 89.9, 0.8);
  expect_start(never, "more than 200 of 300 samples: 67 % (the last point measured)");
  EXPECT_FALSE(never.holds);
  EXPECT_EQ(reached_with_share(table, "t", kPair, 89.9, 0.6).holds, false);
  EXPECT_FALSE(reached_with_share(curve_table({sure("ours", 1, 5)}), "t", kPair, 5, 1).holds);
}

// Without a level it is what theirs reaches with most samples: 65 % with 200, of which ours needs 150.
TEST(FigureClaims, ReachedWithShareOfTheLast) {
  const ResultTable table = curve_table({sure("theirs", 200, 65), sure("ours", 100, 61), sure("ours", 200, 69)});
  const Claim claim = reached_with_share(table, "t", kPair, std::nullopt, 0.8);
  expect_start(claim, "65.0 % with 150 of 200 samples: 75 %");
  EXPECT_EQ(claim.holds, true);
}

TEST(FigureClaims, LargerGap) {
  const ResultTable table = curve_table({sure("ours", 1, 90), sure("theirs", 1, 10), sure("ours", 2, 75),
                                         sure("theirs", 2, 70), sure("x", 2, 64), sure("y", 2, 60)});
  const Claim larger = larger_gap(table, "t", kPair, {"x", "y"});
  expect_start(larger, "5.0 points against 4.0 with 2 samples; difference 1.0");
  EXPECT_EQ(larger.holds, true);
  EXPECT_EQ(larger_gap(table, "t", {"x", "y"}, kPair).holds, false);
  EXPECT_FALSE(larger_gap(table, "t", kPair, {"x", "z"}).holds);
}

TEST(FigureClaims, RatioAtLeast) {
  const std::vector<CurvePoint> points = {sure("ours", 1, 10), sure("theirs", 1, 16.1), sure("ours", 2, 10),
                                          sure("theirs", 2, 20)};
  const Claim claim = min_ratio(curve_table(points), "t", kPair, 1.6);
  expect_start(claim, "ratios 1.61 with 1, 2.00 with 2");
  EXPECT_EQ(claim.holds, true);
  EXPECT_EQ(min_ratio(curve_table(points), "t", kPair, 1.7).holds, false);
  std::vector<CurvePoint> more = points;
  more.push_back({"ours", 3, {std::nullopt}});
  more.push_back(sure("theirs", 3, 20));
  EXPECT_FALSE(min_ratio(curve_table(more), "t", kPair, 1.6).holds) << "a pair that is missing is not left out";
  EXPECT_FALSE(min_ratio(curve_table({sure("ours", 1, 1)}), "t", kPair, 1).holds);
}

TEST(FigureClaims, BetweenEnds) {
  const ResultTable table =
      curve_table({sure("a", 1, 10), sure("b", 1, 20), sure("a", 2, 0), sure("a", 3, 40), sure("b", 3, 60)});
  const Claim rises = rises_between_ends(table, "t", "samples", "accuracy");
  expect_start(rises, "15 % at 1, 50 % at 3 samples; difference 35");
  EXPECT_EQ(rises.holds, true);
  EXPECT_EQ(falls_between_ends(table, "t", "samples", "accuracy").holds, false);
  EXPECT_FALSE(rises_between_ends(curve_table({sure("a", 1, 10)}), "t", "samples", "accuracy").holds);
}

// y = 100 / x: slope -1.
TEST(FigureClaims, SlopeWithin) {
  const ResultTable table = curve_table({sure("a", 1, 100), sure("a", 10, 10), sure("a", 100, 1)});
  EXPECT_EQ(slope_within(table, "t", "samples", "accuracy", {-1.1, -0.9}).holds, true);
  EXPECT_EQ(slope_within(table, "t", "samples", "accuracy", {-0.9, -0.1}).holds, false);
  EXPECT_FALSE(slope_within(curve_table({sure("a", 1, 1)}), "t", "samples", "accuracy", {0, 1}).holds);
}

}  // namespace
}  // namespace sparsight::figure_claims_test
