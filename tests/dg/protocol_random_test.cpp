// The vectors of the specification, which NumPy made.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/dg/numpy_random.h"
#include "sparsight/dg/random_range.h"
#include "sparsight/dg/seed_hash.h"

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

// ERM on large images, hyper-parameter seed 1, trial 0.
TEST(RandomRange, G33_SamplesAreThoseOfDomainBed) {
  const auto sample = [](const std::string& name, const std::string& range) {
    NumpyRandom random(seed_hash({seed_hash({1, 0}), name}));
    return sample_range(range, random);
  };
  EXPECT_EQ(sample("lr", "10^U(-5,-3.5)").get<double>(), 2.7028930742148706e-05);
  EXPECT_EQ(sample("weight_decay", "10^U(-6,-2)").get<double>(), 0.00044832883881609976);
  EXPECT_EQ(sample("batch_size", "floor(2^U(3,5.5))"), 39);
  EXPECT_EQ(sample("resnet_dropout", "{0.0,0.1,0.5}"), 0.5);
}

TEST(RandomRange, RefusesOtherText) {
  NumpyRandom random(0);
  for (const char* text : {"", "{}", "{a}", "U(1)", "floor(U(0,1)", "10^U(0,1))", "log(3)"})
    EXPECT_THROW(sample_range(text, random), Error) << text;
  EXPECT_EQ(sample_range("{2}", random), 2);
}

}  // namespace sparsight::protocol_random_test
