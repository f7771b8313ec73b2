#include "sparsight/analysis/choose_experts.h"

#include <gtest/gtest.h>

namespace sparsight::choose_experts_test {
namespace {

using Kept = std::vector<bool>;

TEST(ChooseExperts, UsedExpertsAreThoseWithLoad) {
  EXPECT_EQ(used_experts({3, 0, 1, 0}), (Kept{true, false, true, false}));
  EXPECT_EQ(used_experts({0, 0}), (Kept{false, false}));
}

// Shares by hand: 0.6, 0.1, 0.3 of ten choices.
TEST(ChooseExperts, SharesAreOfAllChoices) {
  EXPECT_EQ(experts_from_share({6, 1, 3}, 0.1), (Kept{true, true, true}));
  EXPECT_EQ(experts_from_share({6, 1, 3}, 0.11), (Kept{true, false, true}));
  EXPECT_EQ(experts_from_share({6, 1, 3}, 0.61), (Kept{false, false, false}));
  EXPECT_EQ(experts_from_share({0, 0}, 0.01), (Kept{false, false}));
  EXPECT_EQ(experts_from_share({0, 0}, 0), (Kept{true, true}));
}

TEST(ChooseExperts, TheBestStayAndTheSecondNumberBreaksTies) {
  EXPECT_EQ(best_experts({5, 9, 5, 1}, {0.1, 0, 0.2, 7}, 2), (Kept{false, true, true, false}));
  EXPECT_EQ(best_experts({5, 5, 5}, {1, 1, 1}, 2), (Kept{true, true, false}));
  EXPECT_EQ(best_experts({-1, -3, 0}, {0, 0, 0}, 1), (Kept{false, false, true}));
  EXPECT_EQ(best_experts({1, 2}, {0, 0}, 5), (Kept{true, true}));
}

}  // namespace
}  // namespace sparsight::choose_experts_test
