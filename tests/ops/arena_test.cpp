#include "sparsight/ops/cpu/arena.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <memory>
#include <vector>

#include <unistd.h>

namespace sparsight::arena_test {
namespace {

constexpr int64_t kMegabyte = 1 << 18;  // of floats

int64_t resident_megabytes() {
  int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE) >> 20;
}

}  // namespace

class ArenaTest : public ::testing::Test {
 protected:
  void SetUp() override { cpu::release_arena(); }
  void TearDown() override { cpu::release_arena(); }
};

TEST_F(ArenaTest, GivesMemoryAgainToTensorsOfAboutThatSize) {
  const void* first = nullptr;
  {
    const at::Tensor x = cpu::empty_from_arena({64 * kMegabyte});
    first = x.const_data_ptr();
  }
  EXPECT_EQ(cpu::empty_from_arena({60, kMegabyte}).const_data_ptr(), first);
  EXPECT_NE(cpu::empty_from_arena({40, kMegabyte}).const_data_ptr(), first);
  EXPECT_EQ(cpu::empty_from_arena({64 * kMegabyte}).const_data_ptr(), first);
}

TEST_F(ArenaTest, KeepsNoMoreThanWasInUseAtATime) {
  const int64_t pre_activation = resident_megabytes();
  for (int64_t size = 40; size <= 200; size += 10) cpu::empty_from_arena({size, kMegabyte}).fill_(1);
  EXPECT_LE(resident_megabytes() - pre_activation, 2 * 200 + 50);
}

// Room in malloc's heap between blocks still in use, as programs have it that ran for a while.
TEST_F(ArenaTest, GivesReleasedMemoryBackToTheSystemThoughMallocHasRoomForIt) {
  std::vector<std::unique_ptr<std::byte[]>> heap(5000);
  for (auto& block : heap) block.reset(new std::byte[64 << 10]);
  heap.erase(heap.begin(), heap.end() - 1);
  const int64_t pre_activation = resident_megabytes();
  cpu::empty_from_arena({100 * kMegabyte}).fill_(1);
  EXPECT_GE(resident_megabytes() - pre_activation, 90);
  cpu::release_arena();
  EXPECT_LE(resident_megabytes() - pre_activation, 10);
}

}  // namespace sparsight::arena_test
