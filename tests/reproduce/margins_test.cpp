#include "sparsight/reproduce/margins.h"

#include <gtest/gtest.h>

#include "sparsight/reproduce/result_text.h"
#include "tests/reproduce/curve_table.h"

namespace sparsight::margins_test {
namespace {

using testing::curve_table;

const Json kOurs = {{"model", "ours"}, {"samples", 1}}, kTheirs = {{"model", "theirs"}, {"samples", 1}};

ResultTable two(const std::vector<std::optional<double>>& ours, const std::vector<std::optional<double>>& theirs) {
  return curve_table({{"ours", 1, ours}, {"theirs", 1, theirs}});
}

// The jackknife of a difference of means is the paired difference: 1, 2 and 3, with t(0.975, 2) = 4.3027 and standard
// error 1 / sqrt(3).
TEST(Estimate, IsThePairedDifference) {
  const Estimate found = estimate(two({11, 22, 33}, {10, 20, 30}), row_difference(kOurs, kTheirs, "accuracy"));
  EXPECT_EQ(found.seeds, 3);
  EXPECT_NEAR(*found.value, 2, 1e-12);
  ASSERT_EQ(found.parts.size(), 3u);
  EXPECT_NEAR(found.parts[0], 1, 1e-9);
  EXPECT_NEAR(found.parts[2], 3, 1e-9);
  EXPECT_NEAR(found.interval()->low, 2 - 4.3027 / std::sqrt(3.0), 1e-3);
}

TEST(Estimate, LeavesOutSeedsThatOneOfBothLacks) {
  const Estimate found =
      estimate(two({11, 22, std::nullopt, 7}, {10, 20, 99}), row_difference(kOurs, kTheirs, "accuracy"));
  EXPECT_EQ(found.seeds, 2);
  EXPECT_NEAR(*found.value, 1.5, 1e-12);
  const Estimate apart = estimate(two({std::nullopt, 22}, {10}), row_difference(kOurs, kTheirs, "accuracy"));
  EXPECT_EQ(apart.seeds, 0);
  EXPECT_FALSE(apart.value);
  EXPECT_FALSE(estimate(two({1, 2}, {}), row_difference(kOurs, kTheirs, "accuracy")).value);
}

TEST(Judge, SaysUndecidedWithTheSeedsThatDoNotDecide) {
  const Claim claim = judge(two({60, 62, 61}, {61, 60, 61}), "t", {{row_difference(kOurs, kTheirs, "accuracy")}});
  EXPECT_FALSE(claim.holds);
  EXPECT_EQ(verdict_text(claim), "undecided at 3 seeds");
  EXPECT_NE(claim.test.find("95 % interval"), std::string::npos);
}

// Twenty margins of two pairs each, differences -0.1 and -1.0: the 95 % interval of the one would reach 5 above 0, but
// one of -1.0 and -1.1 alone has -2 to -0.4, which with twenty margins is not enough.
TEST(Judge, ManyMarginsNeedMoreToFail) {
  const ResultTable table = two({0, 0}, {1.0, 1.1});
  const Margin margin{row_difference(kOurs, kTheirs, "accuracy")};
  EXPECT_EQ(judge(table, "t", {margin}).holds, false);
  EXPECT_FALSE(judge(table, "t", std::vector<Margin>(20, margin)).holds);
}

TEST(Judge, ABoundShowsOnlyOneSide) {
  Margin margin{row_difference(kOurs, kTheirs, "accuracy")};
  const ResultTable above = two({5, 5.1}, {1, 1}), below = two({1, 1}, {5, 5.1});
  margin.bound = Margin::Bound::upper;
  EXPECT_FALSE(judge(above, "t", {margin}).holds);
  EXPECT_EQ(judge(below, "t", {margin}).holds, false);
  margin.bound = Margin::Bound::lower;
  EXPECT_EQ(judge(above, "t", {margin}).holds, true);
  EXPECT_FALSE(judge(below, "t", {margin}).holds);
}

TEST(EveryTrial, CountsEachAndNotTheMean) {
  const ResultTable table = two({0, 0, 3}, {0});
  const Claim most = every_trial_at_most(table, "t", "accuracy", 1);
  EXPECT_EQ(most.holds, false);
  EXPECT_EQ(most.measured, "the maximum of 4 is 3");
  EXPECT_EQ(every_trial_at_most(table, "t", "accuracy", 3).holds, true);
  EXPECT_EQ(every_trial_at_least(table, "t", "accuracy", 0).holds, true);
  EXPECT_EQ(every_trial_at_least(table, "t", "accuracy", 1).holds, false);
  EXPECT_FALSE(every_trial_at_least(table, "t", "accuracy", 1, {{"model", "nobody"}}).holds);
  EXPECT_EQ(verdict_text(every_trial_at_least(table, "t", "none", 1)), "undecided");
}

}  // namespace
}  // namespace sparsight::margins_test
