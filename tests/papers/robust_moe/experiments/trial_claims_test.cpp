// Claims that hold in every trial up to standard errors. 1000 images: the standard error of 50 % is 1.58 points.
#include "sparsight/papers/robust_moe/experiments/trial_claims.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace sparsight::robust_moe::trial_claims_test {
namespace {

// Rows of the axis "epsilon" 0, 1, 2 of one model, with one trial each.
ResultTable table_of(const std::vector<double>& errors, const std::vector<double>& others) {
  ResultTable table;
  table.axes = {"model", "epsilon"};
  table.measures = {{"robust_error", "", 1}, {"other", "", 1}, {"images", "", 0}};
  for (size_t i = 0; i < errors.size(); ++i) {
    ResultRow row;
    row.settings = {{"model", "ViT"}, {"epsilon", static_cast<double>(i)}};
    row.trials = {{3, {errors[i], others[i], 1000.0}}};
    table.rows.push_back(row);
  }
  return table;
}

}  // namespace

TEST(TrialClaims, A53_TheErrorFallsByAtMostTwoStandardErrors) {
  EXPECT_EQ(never_falls(table_of({50, 47, 60}, {0, 0, 0}), "", "epsilon", {}, 2).holds, true);  // 3 < 3.16
  const Claim fails = never_falls(table_of({50, 46.8, 60}, {0, 0, 0}), "it falls", "epsilon", {}, 2);
  EXPECT_EQ(fails.holds, false);
  EXPECT_EQ(fails.measured, "at worst from 50.0 to 46.8 % (model ViT, epsilon 1.0, seed 3); 2 comparisons");
  EXPECT_EQ(never_falls(table_of({}, {}), "", "epsilon", {}, 2).holds, std::nullopt);
  EXPECT_EQ(never_falls(table_of({100, 100, 100}, {0, 0, 0}), "", "epsilon", {}, 2).holds, true);
}

TEST(TrialClaims, A54_OneErrorIsAtLeastTheOtherMinusAStandardError) {
  EXPECT_EQ(never_below(table_of({48.5, 60}, {50, 50}), "", {}, "other", 1).holds, true);  // 1.5 < 1.58
  EXPECT_EQ(never_below(table_of({48.3, 60}, {50, 50}), "", {}, "other", 1).holds, false);
}

TEST(TrialClaims, A56_TwoErrorsDifferByAtMostTwoStandardErrors) {
  EXPECT_EQ(never_apart(table_of({47, 53}, {50, 50}), "", {}, "other", 2).holds, true);
  EXPECT_EQ(never_apart(table_of({47, 53.3}, {50, 50}), "", {}, "other", 2).holds, false);
  EXPECT_EQ(never_apart(table_of({99, 100}, {100, 100}), "", {}, "other", 2).holds, false);  // no error of 100 %
}

TEST(TrialClaims, AMeasureGrowsStrictly) {
  EXPECT_EQ(always_grows(table_of({1, 2, 3}, {0, 0, 0}), "", "epsilon", "robust_error").holds, true);
  EXPECT_EQ(always_grows(table_of({1, 2, 2}, {0, 0, 0}), "", "epsilon", "robust_error").holds, false);
}

}  // namespace sparsight::robust_moe::trial_claims_test
