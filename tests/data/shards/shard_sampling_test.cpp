// loader.sampling = "shards".
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <set>

#include "sparsight/core/error.h"
#include "sparsight/core/shuffle.h"
#include "sparsight/data/decorators/concat.h"
#include "sparsight/data/decorators/subset.h"
#include "sparsight/data/sampler.h"
#include "tests/data/readers/fixtures.h"

namespace sparsight::shard_sampling_test {

using testing::complaint;
using testing::says;
using Order = std::vector<int64_t>;

// Images in shards of given sizes.
class Shards : public DataSet {
 public:
  explicit Shards(const std::vector<int64_t>& sizes) {
    for (size_t s = 0; s < sizes.size(); ++s) shard_of_.insert(shard_of_.end(), static_cast<size_t>(sizes[s]), s);
    info_.name = "numbers", info_.classes = {"a"}, info_.domains = {"d"};
  }
  const DataInfo& info() const override { return info_; }
  int64_t size() const override { return std::ssize(shard_of_); }
  Sample get(int64_t) const override { return {}; }
  int64_t label(int64_t) const override { return 0; }
  int64_t shard(int64_t index) const override { return shard_of_.at(static_cast<size_t>(index)); }

 private:
  DataInfo info_;
  std::vector<int64_t> shard_of_;
};

Order order_of(const DataSet& data, int64_t buffer, uint64_t seed = 1, int64_t epoch = 0) {
  return epoch_order("shards", data, {}, seed, epoch, 0, buffer);
}

// Shards one after the other, without the buffer.
Order stream_of(const DataSet& data, uint64_t seed = 1, int64_t epoch = 0) { return order_of(data, 1, seed, epoch); }

TEST(ShardSampling, ABufferOfOneReadsWholeShardsInRandomOrder) {
  const Shards data({3, 1, 4, 2});
  std::set<Order> seen;
  for (int64_t epoch = 0; epoch < 200; ++epoch) {
    const Order order = stream_of(data, 1, epoch);
    for (size_t i = 1; i < order.size(); ++i)
      if (data.shard(order[i]) == data.shard(order[i - 1])) {
        EXPECT_EQ(order[i], order[i - 1] + 1);
      }
    seen.insert(order);
  }
  EXPECT_EQ(seen.size(), 24u);  // all orders of four shards
}

TEST(ShardSampling, IsAPermutationThatMovesImagesByFewerPlacesThanTheBuffer) {
  const Shards data({50, 70, 1, 300, 30});
  for (const int64_t buffer : {2, 10, 100, 1000}) {
    const Order stream = stream_of(data), order = order_of(data, buffer);
    Order sorted = order;
    std::ranges::sort(sorted);
    for (int64_t i = 0; i < data.size(); ++i) ASSERT_EQ(sorted[static_cast<size_t>(i)], i);
    int64_t farthest = 0;
    for (int64_t place = 0; place < data.size(); ++place) {
      const auto found = std::ranges::find(stream, order[static_cast<size_t>(place)]);
      farthest = std::max<int64_t>(farthest, std::abs(found - stream.begin() - place));
    }
    EXPECT_LT(farthest, buffer);
    if (buffer < 1000) {
      EXPECT_GE(farthest, buffer / 2);  // it does shuffle
    }
  }
}

// Four images in the shards {0, 1} and {2, 3}, and a buffer of 3. With seed 57 the second shard comes first: 2, 3,
// 0, 1. The numbers drawn are 2, 0, 1, 0, so that these four go to the places 0 + 2, 1 + 0, 2 + 1 and 3 + 0: first 3
// (place 1), then 2 (place 2), then 1 and 0 (place 3, the later one first).
TEST(ShardSampling, EqualsASmallCaseWorkedOutByHand) {
  RandomStream random(57, "sampler", 2);
  Order shards{0, 1}, drawn;
  shuffle(shards, random);
  for (int i = 0; i < 4; ++i) drawn.push_back(random.below(3));
  ASSERT_EQ(shards, (Order{1, 0}));
  ASSERT_EQ(drawn, (Order{2, 0, 1, 0}));
  EXPECT_EQ(order_of(Shards({2, 2}), 3, 57, 2), (Order{3, 2, 1, 0}));
}

TEST(ShardSampling, IsAFunctionOfSeedAndEpoch) {
  const Shards data({50, 70, 30});
  EXPECT_EQ(order_of(data, 20, 1, 0), order_of(data, 20, 1, 0));
  EXPECT_NE(order_of(data, 20, 1, 0), order_of(data, 20, 1, 1));
  EXPECT_NE(order_of(data, 20, 1, 0), order_of(data, 20, 2, 0));
}

TEST(ShardSampling, SeesTheShardsBehindSubsetsAndJoins) {
  const auto data = std::make_shared<Shards>(std::vector<int64_t>{3, 3});
  const SubsetDataSet subset(data, {0, 2, 3, 5});
  EXPECT_EQ(subset.shard(2), 1);
  const Order order = stream_of(subset);
  EXPECT_TRUE(order == (Order{0, 1, 2, 3}) || order == (Order{2, 3, 0, 1}));
  const ConcatDataSet joined({data, data});
  EXPECT_EQ(joined.shard(11), 1);
  EXPECT_EQ(stream_of(joined).size(), 12u);
}

TEST(ShardSampling, RefusesDataThatAreNotInShards) {
  class Alone : public Shards {
   public:
    Alone() : Shards({4}) {}
    int64_t shard(int64_t) const override { return -1; }
  };
  EXPECT_TRUE(
      says(complaint([] { order_of(Alone(), 3); }), "needs data in shards, which numbers is not; use \"shuffle\""));
}

}  // namespace sparsight::shard_sampling_test
