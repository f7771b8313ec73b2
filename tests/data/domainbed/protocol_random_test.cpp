// The vectors of the specification, which NumPy made.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sparsight/data/domainbed/numpy_random.h"
#include "sparsight/data/domainbed/seed_hash.h"

namespace sparsight::protocol_random_test {

using nlohmann::ordered_json;

TEST(SeedHash, G35_ReproducesThoseOfDomainBed) {
  EXPECT_EQ(seed_hash({0, 0}), 894182419u);
  EXPECT_EQ(seed_hash({0, 1}), 1514274641u);
  EXPECT_EQ(seed_hash({1, 0}), 785910682u);
  EXPECT_EQ(seed_hash({2, 3}), 1709828778u);
  EXPECT_EQ(seed_hash({"PACS", "GMOE", ordered_json::array({0}), 0, 0}), 1433477475u);
  EXPECT_EQ(python_tuple({"PACS", "GMOE", ordered_json::array({0}), 0, 0}), "('PACS', 'GMOE', [0], 0, 0)");
  EXPECT_EQ(python_tuple(ordered_json::array({7})), "(7,)");
}

TEST(NumpyRandom, G36_ShufflesAsNumpyDoes) {
  EXPECT_EQ(NumpyRandom(894182419).permutation(20),
            (std::vector<int64_t>{7, 6, 10, 17, 2, 11, 13, 16, 15, 1, 8, 9, 0, 3, 4, 5, 18, 19, 14, 12}));
  const std::vector<int64_t> many = NumpyRandom(894182419).permutation(2048);
  EXPECT_EQ(std::vector<int64_t>(many.begin(), many.begin() + 8),
            (std::vector<int64_t>{548, 677, 1997, 977, 1553, 1123, 1936, 1520}));
  EXPECT_TRUE(NumpyRandom(1).permutation(0).empty());
}

// numpy.random.RandomState(0): random_sample() is 0.5488135039273248.
TEST(NumpyRandom, UniformNumbersHave53Bits) {
  NumpyRandom random(0);
  EXPECT_EQ(random.uniform(), 0.5488135039273248);
  EXPECT_EQ(random.uniform(), 0.7151893663724195);
  EXPECT_EQ(NumpyRandom(5).below(1), 0);
}

}  // namespace sparsight::protocol_random_test
