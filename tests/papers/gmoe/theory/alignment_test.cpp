#include "sparsight/papers/gmoe/theory/alignment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sparsight/core/error.h"
#include "sparsight/core/random.h"

namespace sparsight::gmoe::alignment_test {
namespace {

// What an expert needs for a group, by the formula of section 8.2, written independently of group_cost().
double needed_by(const std::vector<double>& group, double power) {
  double sum = 0;
  for (const double branch : group) sum += std::exp(std::log(branch) / power);
  return std::exp(power * std::log(sum));
}

// Over all assignments of branches to experts.
double by_brute_force(const ProgramCosts& costs, int64_t experts) {
  const size_t branches = costs.branches.size();
  std::vector<size_t> expert(branches, 0);
  double best = 1e300;
  while (true) {
    double dearest = 0;
    for (int64_t e = 0; e < experts; ++e) {
      std::vector<double> group;
      for (size_t b = 0; b < branches; ++b)
        if (expert[b] == static_cast<size_t>(e)) group.push_back(costs.branches[b]);
      if (!group.empty()) dearest = std::max(dearest, needed_by(group, costs.power));
    }
    best = std::min(best, dearest);
    size_t b = 0;
    while (b < branches && ++expert[b] == static_cast<size_t>(experts)) expert[b++] = 0;
    if (b == branches) return best;
  }
}

}  // namespace

// Section 8.2: M = 8, c = 1, gate 1. By hand at power 1, N = 3: groups of 3, 3, 2 branches; (3 + 1) * 3 = 12. At power
// 2 and N = 2: groups of 4; (2 + 1) * 16 = 48.
TEST(GmoeAlignment, G58_TheVectorsOfTheoremTwo) {
  const std::vector<double> linear = {16, 12, 12, 10, 12, 14, 16, 9, 10, 11, 12, 13, 14, 15, 16, 17};
  const std::vector<double> square = {128, 48, 36, 20, 24, 28, 32, 9, 10, 11, 12, 13, 14, 15, 16, 17};
  for (int64_t experts = 1; experts <= 16; ++experts) {
    const auto at = static_cast<size_t>(experts - 1);
    EXPECT_NEAR(moe_alignment({std::vector<double>(8, 1.0), 1, 1}, experts), linear[at], 1e-9) << experts;
    EXPECT_NEAR(moe_alignment({std::vector<double>(8, 1.0), 1, 2}, experts), square[at], 1e-9) << experts;
  }
  EXPECT_NEAR(moe_alignment({std::vector<double>(8, 1.0), 5, 1}, 4), 25, 1e-9);  // (4 + 1) * the gate's 5
}

TEST(GmoeAlignment, G58_TheDynamicProgrammeEqualsBruteForce) {
  RandomStream random(3, "branches");
  for (int64_t branches = 1; branches <= 8; ++branches)
    for (const double power : {1.0, 1.5, 2.0}) {
      ProgramCosts costs{{}, 0, power};
      for (int64_t b = 0; b < branches; ++b) costs.branches.push_back(random.uniform(0.5, 5));
      // Eight branches on eight experts would be 16 million assignments.
      for (int64_t experts = 1; experts <= std::min<int64_t>(branches, branches < 8 ? 7 : 4); ++experts)
        EXPECT_NEAR(cheapest_grouping(costs, experts), by_brute_force(costs, experts), 1e-9)
            << branches << " " << power << " " << experts;
    }
  // By hand: {3, 2} and {4, 1} need 5 each at power 1; at power 2 {4} needs 4, and {9, 1} (3 + 1)^2.
  EXPECT_NEAR(cheapest_grouping({{1, 2, 3, 4}, 0, 1}, 2), 5, 1e-12);
  EXPECT_NEAR(cheapest_grouping({{1, 9, 4}, 0, 2}, 2), 9, 1e-12);
  EXPECT_NEAR(group_cost({{}, 0, 2}, {9, 1}), 16, 1e-12);
}

TEST(GmoeAlignment, RefusesTooManyBranchesAndNone) {
  EXPECT_THROW(cheapest_grouping({std::vector<double>(17, 1.0)}, 2), Error);
  EXPECT_THROW(moe_alignment({{}}, 2), Error);
  EXPECT_THROW(cheapest_grouping({{1, 2}}, 0), Error);
}

}  // namespace sparsight::gmoe::alignment_test
