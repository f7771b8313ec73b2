#include "sparsight/analysis/superclasses/random_map.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace sparsight::random_map_test {
namespace {

using Map = std::vector<int64_t>;
using testing::error_text;

Map count_sizes(const Map& map, int64_t groups) {
  Map sizes(static_cast<size_t>(groups));
  for (const int64_t entry : map) ++sizes.at(static_cast<size_t>(entry));
  return sizes;
}

TEST(RandomSuperclasses, M28_SizesDifferByAtMostOne) {
  for (const auto& [classes, groups] : {std::pair<int64_t, int64_t>{100, 10}, {100, 7}, {5, 5}, {1000, 1}, {11, 4}}) {
    const Map sizes = count_sizes(random_superclass_map(classes, groups, 3), groups);
    EXPECT_LE(std::ranges::max(sizes) - std::ranges::min(sizes), 1) << classes << " / " << groups;
    EXPECT_GE(std::ranges::min(sizes), 1);
  }
}

TEST(RandomSuperclasses, M28_FollowTheSeed) {
  EXPECT_EQ(random_superclass_map(100, 10, 3), random_superclass_map(100, 10, 3));
  EXPECT_NE(random_superclass_map(100, 10, 3), random_superclass_map(100, 10, 4));
}

TEST(RandomSuperclasses, M28_SizesCanBeGiven) {
  const Map sizes = {7, 1, 40, 2};
  EXPECT_EQ(count_sizes(random_superclass_map_of_sizes(sizes, 1), 4), sizes);
  EXPECT_NE(random_superclass_map_of_sizes(sizes, 1), random_superclass_map_of_sizes(sizes, 2));
}

// Over 1000 seeds class 0 falls into each of 4 equal groups 250 times on average, with a standard deviation of 13.7.
TEST(RandomSuperclasses, GiveEveryClassEveryGroup) {
  Map hits(4);
  for (uint64_t seed = 0; seed < 1000; ++seed) ++hits[static_cast<size_t>(random_superclass_map(8, 4, seed)[0])];
  for (const int64_t count : hits) EXPECT_NEAR(static_cast<double>(count), 250, 5 * 13.7);
}

TEST(RandomSuperclasses, RefuseMoreGroupsThanClasses) {
  EXPECT_EQ(error_text<UsageError>([] { random_superclass_map(3, 4, 0); }),
            "4 random super-classes of 3 classes; choose 1 to 3");
  EXPECT_NE(error_text<UsageError>([] { random_superclass_map(3, 0, 0); }), "");
  EXPECT_EQ(error_text<UsageError>([] {
              random_superclass_map_of_sizes({2, 0}, 0);
            }),
            "random super-class 1 has 0 classes; give each at least 1");
  EXPECT_NE(error_text<UsageError>([] { random_superclass_map_of_sizes({}, 0); }), "");
}

}  // namespace
}  // namespace sparsight::random_map_test
