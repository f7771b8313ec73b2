// Claims about every trial, up to the error over images. 1000 images: that of the difference of two shares near 50 % is
// 2.23 points, and of one comparison 1.96 times as much decides.
#include "sparsight/papers/robust_moe/experiments/trial_claims.h"

#include <gtest/gtest.h>

#include <algorithm>

#include <nlohmann/json.hpp>

namespace sparsight::robust_moe::trial_claims_test {
namespace {

// Rows of the axis "epsilon" 0, 1, 2 of one model, with one trial each.
ResultTable error_table(const std::vector<double>& errors, const std::vector<double>& others) {
  ResultTable table;
  table.axes = {"model", "epsilon"};
  table.measures = {{"robust_error", "", 1}, {"other", "", 1}};
  for (size_t i = 0; i < errors.size(); ++i) {
    ResultRow row;
    row.settings = {{"model", "ViT"}, {"epsilon", static_cast<double>(i)}};
    row.trials = {{3, {errors[i], others[i]}, {{errors[i], 1000.0}, {others[i], 1000.0}}}};
    table.rows.push_back(row);
  }
  return table;
}

}  // namespace

// Two comparisons: 2.24 standard errors decide.
TEST(TrialClaims, A53_TheErrorFallsByAtMostTwoStandardErrors) {
  const auto judged = [](const std::vector<double>& errors) {
    return never_falls(error_table(errors, {0, 0, 0}), "it falls", "epsilon", "robust_error", 2);
  };
  EXPECT_EQ(judged({50, 45.6, 60}).holds, true);          // 4.4 < 4.46
  EXPECT_EQ(judged({50, 45.3, 60}).holds, std::nullopt);  // 4.7 < 4.99
  const Claim fails = judged({50, 44.9, 60});
  EXPECT_EQ(fails.holds, false);
  EXPECT_EQ(fails.measured, "at worst from 50.0 to 44.9 % (model ViT, epsilon 1.0, seed 3); 2 comparisons");
  EXPECT_EQ(judged({}).holds, std::nullopt);
  EXPECT_EQ(judged({100, 100, 100}).holds, true);
}

TEST(TrialClaims, A54_OneErrorIsAtLeastTheOtherMinusAStandardError) {
  const auto judged = [](double error, double other) {
    return never_below(error_table({error}, {other}), "", "robust_error", "other", 1).holds;
  };
  EXPECT_EQ(judged(47.9, 50), true);  // 2.1 < 2.23
  EXPECT_EQ(judged(47, 50), std::nullopt);
  EXPECT_EQ(judged(45.5, 50), false);  // 4.5 > 4.37
  EXPECT_EQ(judged(99.9, 100), true);  // one image of 1000
}

TEST(TrialClaims, A56_TwoErrorsDifferByAtMostTwoStandardErrors) {
  const auto judged = [](double error) {
    return never_apart(error_table({error, 50, 50}, {50, 50, 50}), "", "robust_error", "other", 2).holds;
  };
  EXPECT_EQ(judged(54.4), true);
  EXPECT_EQ(judged(45.6), true);
  EXPECT_EQ(judged(55.1), std::nullopt);  // three comparisons: 2.39 standard errors, 5.3 points
  EXPECT_EQ(judged(55.5), false);
}

// The same difference, of images that are known one by one: ten that only the second attack finds are 3 standard
// errors.
TEST(TrialClaims, A54_KnownImagesDecideEarlier) {
  ResultTable table = error_table({50}, {51});
  EXPECT_EQ(never_below(table, "", "robust_error", "other", 1).holds, true);
  std::string found(1000, '0');
  std::fill_n(found.begin(), 500, '1');
  table.rows[0].trials[0].shares[0].outcomes = to_outcomes(found);
  std::fill_n(found.begin(), 510, '1');
  table.rows[0].trials[0].shares[1].outcomes = to_outcomes(found);
  EXPECT_EQ(never_below(table, "", "robust_error", "other", 1).holds, false);
}

TEST(TrialClaims, AMeasureGrowsStrictly) {
  EXPECT_EQ(always_grows(error_table({1, 2, 3}, {0, 0, 0}), "", "epsilon", "robust_error").holds, true);
  EXPECT_EQ(always_grows(error_table({1, 2, 2}, {0, 0, 0}), "", "epsilon", "robust_error").holds, false);
}

}  // namespace sparsight::robust_moe::trial_claims_test
