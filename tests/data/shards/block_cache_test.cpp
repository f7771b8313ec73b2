#include "sparsight/data/shards/block_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "sparsight/core/error.h"
#include "sparsight/core/random.h"

namespace sparsight::block_cache_test {

// Byte i of file f.
uint8_t byte_of(size_t file, int64_t i) { return static_cast<uint8_t>(file * 31 + i * 7 % 251); }

struct Loads {
  struct Load {
    size_t file;
    int64_t first, bytes;
    bool operator==(const Load&) const = default;
  };
  std::mutex mutex;
  std::vector<Load> all;

  BlockCache::Load function() {
    return [this](size_t file, int64_t first, int64_t bytes) {
      const std::lock_guard lock(mutex);
      all.push_back({file, first, bytes});
      Bytes result;
      for (int64_t i = 0; i < bytes; ++i) result.push_back(byte_of(file, first + i));
      return result;
    };
  }
};

void expect_right(BlockCache& cache, size_t file, int64_t file_bytes, int64_t offset, int64_t bytes) {
  Bytes got(static_cast<size_t>(bytes));
  cache.read(file, file_bytes, offset, got.data(), got.size());
  for (int64_t i = 0; i < bytes; ++i) ASSERT_EQ(got[i], byte_of(file, offset + i)) << offset << "+" << i;
}

TEST(BlockCache, LoadsMissingBlocksTogetherAndOnce) {
  Loads loads;
  BlockCache cache(10, 100, loads.function());
  expect_right(cache, 3, 95, 12, 5);
  expect_right(cache, 3, 95, 12, 8);
  EXPECT_EQ(loads.all, (std::vector<Loads::Load>{{3, 10, 10}}));
  expect_right(cache, 3, 95, 5, 90);  // block 1 is there; the last block has 5 bytes
  EXPECT_EQ(loads.all, (std::vector<Loads::Load>{{3, 10, 10}, {3, 0, 10}, {3, 20, 75}}));
  expect_right(cache, 4, 95, 12, 5);
  EXPECT_EQ(loads.all.back(), (Loads::Load{4, 10, 10}));
}

TEST(BlockCache, DropsWhatWasNotUsedForLongest) {
  Loads loads;
  BlockCache cache(10, 30, loads.function());
  for (const int64_t block : {0, 1, 2, 0, 3}) expect_right(cache, 0, 100, 10 * block, 10);
  EXPECT_EQ(loads.all.size(), 4u);
  expect_right(cache, 0, 100, 0, 10);  // still there
  EXPECT_EQ(loads.all.size(), 4u);
  expect_right(cache, 0, 100, 10, 10);  // dropped for block 3
  EXPECT_EQ(loads.all.size(), 5u);
}

TEST(BlockCache, ReadsMoreThanItsMemory) {
  for (const int64_t memory : {0, 5, 25}) {
    Loads loads;
    BlockCache cache(10, memory, loads.function());
    for (int i = 0; i < 3; ++i) expect_right(cache, 0, 100, 3, 95);
    EXPECT_GE(loads.all.size(), 3u);
  }
}

TEST(BlockCache, TellsWhetherBlocksPay) {
  Loads loads;
  BlockCache sequential(10, 20, loads.function()), scattered(10, 20, loads.function());
  for (int64_t i = 0; i < 100; ++i) {
    expect_right(sequential, 0, 1000, 10 * i, 10);
    expect_right(scattered, 0, 1000, 10 * i, 1);
  }
  EXPECT_TRUE(sequential.pays());
  EXPECT_FALSE(scattered.pays());
}

TEST(BlockCache, AnErrorIsRaisedAndTheBlockTriedAgain) {
  int calls = 0;
  BlockCache cache(10, 20, [&](size_t, int64_t, int64_t bytes) -> Bytes {
    if (++calls == 1) fail("broken");
    return Bytes(static_cast<size_t>(bytes), 5);
  });
  uint8_t byte = 0;
  EXPECT_THROW(cache.read(0, 100, 3, &byte, 1), Error);
  cache.read(0, 100, 3, &byte, 1);
  EXPECT_EQ(byte, 5);
}

TEST(BlockCache, ServesManyThreads) {
  Loads loads;
  BlockCache cache(64, 1 << 20, loads.function());
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&cache, t] {
      RandomStream random(t, "reads");
      for (int i = 0; i < 500; ++i) {
        const int64_t offset = random.below(9000);
        expect_right(cache, static_cast<size_t>(random.below(2)), 10'000, offset, 1 + random.below(1000));
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const size_t file : {0, 1}) expect_right(cache, file, 10'000, 0, 10'000);
  int64_t loaded = 0;
  for (const Loads::Load& load : loads.all) loaded += load.bytes;
  EXPECT_EQ(loaded, 20'000);  // each byte once
}

}  // namespace sparsight::block_cache_test
