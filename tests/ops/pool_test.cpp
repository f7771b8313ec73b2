#include "sparsight/ops/cpu/pool.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <memory>
#include <vector>

#include <unistd.h>

namespace sparsight::pool_test {
namespace {

constexpr int64_t kMegabyte = 1 << 18;  // of floats

int64_t resident_megabytes() {
  int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE) >> 20;
}

}  // namespace

class PoolTest : public ::testing::Test {
 protected:
  void SetUp() override { cpu::release_pool(); }
  void TearDown() override { cpu::release_pool(); }
};

TEST_F(PoolTest, GivesMemoryAgainToTensorsOfAboutThatSize) {
  const void* first = nullptr;
  {
    const at::Tensor x = cpu::empty_from_pool({64 * kMegabyte});
    first = x.const_data_ptr();
  }
  EXPECT_EQ(cpu::empty_from_pool({60, kMegabyte}).const_data_ptr(), first);
  EXPECT_NE(cpu::empty_from_pool({40, kMegabyte}).const_data_ptr(), first);
  EXPECT_EQ(cpu::empty_from_pool({64 * kMegabyte}).const_data_ptr(), first);
}

TEST_F(PoolTest, KeepsNoMoreThanWasInUseAtATime) {
  const int64_t before = resident_megabytes();
  for (int64_t size = 40; size <= 200; size += 10) cpu::empty_from_pool({size, kMegabyte}).fill_(1);
  EXPECT_LE(resident_megabytes() - before, 2 * 200 + 50);
}

// Room in malloc's heap between blocks still in use, as programs have it that ran for a while.
TEST_F(PoolTest, GivesReleasedMemoryBackToTheSystemThoughMallocHasRoomForIt) {
  std::vector<std::unique_ptr<std::byte[]>> heap(5000);
  for (auto& block : heap) block.reset(new std::byte[64 << 10]);
  heap.erase(heap.begin(), heap.end() - 1);
  const int64_t before = resident_megabytes();
  cpu::empty_from_pool({100 * kMegabyte}).fill_(1);
  EXPECT_GE(resident_megabytes() - before, 90);
  cpu::release_pool();
  EXPECT_LE(resident_megabytes() - before, 10);
}

}  // namespace sparsight::pool_test
