#include "sparsight/moe/routers/balanced_assignment.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/moe/shazeer_example.h"
#include "tests/support/random_tensor.h"

namespace sparsight::balanced_assignment_test {
namespace {

using test::table;

double value(const at::Tensor& scores, const at::Tensor& expert) {
  return scores.gather(1, expert.unsqueeze(1)).sum().item<double>();
}

// The best sum over all assignments with at most ceil(N/E) tokens for each expert, by trying them.
double best_value(const at::Tensor& scores) {
  const int64_t tokens = scores.size(0), experts = scores.size(1), room = (tokens + experts - 1) / experts;
  const auto score = scores.accessor<double, 2>();
  std::vector<int64_t> left(static_cast<size_t>(experts), room);
  const std::function<double(int64_t)> rest = [&](int64_t token) {
    if (token == tokens) return 0.0;
    double best = -std::numeric_limits<double>::infinity();
    for (int64_t e = 0; e < experts; ++e)
      if (auto& seats = left[static_cast<size_t>(e)]; seats > 0) {
        --seats;
        best = std::max(best, score[token][e] + rest(token + 1));
        ++seats;
      }
    return best;
  };
  return rest(0);
}

}  // namespace

// Both tokens prefer expert 0: 5 + 1 = 6 if the first one gets it, 3 + 4 = 7 if the second does.
TEST(BalancedAssignment, GivesWayWhereTheSumGains) {
  const at::Tensor scores = test::table({{5, 3}, {4, 1}});
  EXPECT_TRUE(torch::equal(balanced_assignment(scores), torch::tensor({1, 0}, torch::kLong)));
}

TEST(BalancedAssignment, FindsTheBestOfAllAssignments) {
  for (uint64_t seed = 0; seed < 20; ++seed)
    for (const auto& [tokens, experts] : {std::pair<int64_t, int64_t>{6, 3}, {8, 2}, {7, 3}, {5, 5}, {2, 4}}) {
      const at::Tensor scores = test::random_tensor({tokens, experts}, seed);
      const double range = (scores.max() - scores.min()).item<double>();
      const at::Tensor expert = balanced_assignment(scores);
      EXPECT_NEAR(value(scores, expert), best_value(scores), 1e-5 * range * static_cast<double>(tokens));
      EXPECT_LE(torch::bincount(expert).max().item<int64_t>(), (tokens + experts - 1) / experts);
    }
}

TEST(BalancedAssignment, IsBalancedAndNoExchangePaysOnLargeBatches) {
  for (const bool alike : {false, true}) {
    at::Tensor scores = test::random_tensor({1024, 8}, 1);
    if (alike) scores = 0.01 * scores + torch::linspace(0, 3, 8, torch::kDouble);  // all want the last expert
    const at::Tensor expert = balanced_assignment(scores);
    EXPECT_TRUE(torch::equal(torch::bincount(expert, {}, 8), torch::full({8}, 128, torch::kLong)));
    // gain[i,j]: what tokens i and j win by exchanging their experts.
    const at::Tensor own = scores.gather(1, expert.unsqueeze(1));  // [N,1]
    const at::Tensor other = scores.index_select(1, expert);       // [N,N]: token i at the expert of j
    const at::Tensor gain = other + other.t() - own - own.t();
    EXPECT_LE(gain.max().item<double>(), 2e-5 * (scores.max() - scores.min()).item<double>() + 1e-9);
    EXPECT_TRUE(torch::equal(balanced_assignment(scores), expert));
  }
}

TEST(BalancedAssignment, TiesGoToTheLowestExpertInTokenOrder) {
  EXPECT_TRUE(torch::equal(balanced_assignment(torch::zeros({6, 3})), torch::tensor({0, 0, 1, 1, 2, 2}, torch::kLong)));
}

TEST(BalancedAssignment, NanAndInfinityStayInTheirRows) {
  at::Tensor scores = test::table({{NAN, 1}, {0.5, 0}, {INFINITY, 0}, {0, -INFINITY}});
  EXPECT_TRUE(
      torch::equal(balanced_assignment(torch::full({4, 2}, NAN)).bincount(), torch::tensor({2, 2}, torch::kLong)));
  const at::Tensor expert = balanced_assignment(scores);
  EXPECT_EQ(expert[0].item<int64_t>(), 1);
  EXPECT_EQ(expert[2].item<int64_t>(), 0);
  EXPECT_EQ(expert[3].item<int64_t>(), 0);
  EXPECT_EQ(balanced_assignment(torch::zeros({0, 3})).size(0), 0);
  EXPECT_TRUE(torch::equal(balanced_assignment(torch::ones({3, 1})), torch::zeros({3}, torch::kLong)));
}

TEST(BalancedAssignment, EndsOnScoresOfAnySize) {
  constexpr double kMax = std::numeric_limits<double>::max(), kMin = std::numeric_limits<double>::denorm_min();
  for (const double same : {1e17, 1e20, -1e300, kMax, kMin})
    EXPECT_TRUE(torch::equal(balanced_assignment(torch::full({6, 3}, same, torch::kDouble)),
                             torch::tensor({0, 0, 1, 1, 2, 2}, torch::kLong)))
        << same;
  for (const at::Tensor& alike : {table({{kMax, -kMax}}), table({{kMin, 0}}), table({{3e38, INFINITY}}),
                                  table({{3e38, INFINITY}}).to(torch::kFloat)})
    EXPECT_TRUE(torch::equal(balanced_assignment(alike.expand({4, 2})).bincount(), torch::tensor({2, 2}, torch::kLong)))
        << alike;
}

// The second token gains where the first one does not.
TEST(BalancedAssignment, SeesDifferencesOfAnySize) {
  constexpr double kMax = std::numeric_limits<double>::max(), kMin = std::numeric_limits<double>::denorm_min();
  for (const auto& [low, high] : {std::pair{1e17, 1e17 + 16}, {-kMax, kMax}, {0.0, kMin}, {3e38, INFINITY}})
    EXPECT_TRUE(
        torch::equal(balanced_assignment(table({{low, low}, {high, low}})), torch::tensor({1, 0}, torch::kLong)))
        << low;
}

}  // namespace sparsight::balanced_assignment_test
