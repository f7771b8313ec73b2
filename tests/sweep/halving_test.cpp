#include "sparsight/sweep/halving.h"

#include <gtest/gtest.h>

#include <vector>

namespace sparsight::halving_test {

using Pairs = std::vector<std::pair<int64_t, int64_t>>;

Pairs rungs(int64_t settings, int64_t epochs, int64_t factor) {
  Pairs pairs;
  for (const Rung& rung : halving_rungs(settings, epochs, factor)) pairs.emplace_back(rung.settings, rung.epochs);
  return pairs;
}

TEST(SuccessiveHalving, EachRungHasAShareOfTheSettingsAndAsManyMoreEpochs) {
  EXPECT_EQ(rungs(27, 27, 3), (Pairs{{27, 1}, {9, 3}, {3, 9}, {1, 27}}));
  EXPECT_EQ(rungs(8, 100, 2), (Pairs{{8, 12}, {4, 25}, {2, 50}, {1, 100}}));
  EXPECT_EQ(rungs(5, 10, 2), (Pairs{{5, 2}, {2, 5}, {1, 10}}));
}

TEST(SuccessiveHalving, StopsWhereARungWouldHaveNoEpochOrNoSetting) {
  EXPECT_EQ(rungs(100, 4, 3), (Pairs{{100, 1}, {33, 4}}));
  EXPECT_EQ(rungs(2, 100, 3), (Pairs{{2, 100}}));
  EXPECT_EQ(rungs(1, 1, 2), (Pairs{{1, 1}}));
}

}  // namespace sparsight::halving_test
