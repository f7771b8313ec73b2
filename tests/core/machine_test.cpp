#include "sparsight/core/machine.h"
#include "tests/support/platform.h"

#include <sys/mman.h>

#include <cstring>

#include <gtest/gtest.h>

namespace sparsight::machine_test {
namespace {

constexpr size_t kMebibytes = 96;

// Memory that was really used, and given back: the system's, since the allocator may keep what earlier tests freed.
void use(size_t mebibytes) {
  const size_t size = mebibytes << 20;
  void* const bytes = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(bytes, MAP_FAILED);
  std::memset(bytes, 1, size);
  ASSERT_EQ(static_cast<volatile char*>(bytes)[size / 2], 1);
  ASSERT_EQ(munmap(bytes, size), 0);
}

TEST(Machine, G56_EachPhaseHasItsOwnPeak) {
  if (test::kIsWasm) GTEST_SKIP() << "WebAssembly gives no memory back";
  const int64_t before = resident_memory_bytes();
  ASSERT_GT(before, 0);
  PhasePeaks peaks;
  use(kMebibytes);
  const int64_t large = peaks.end_phase();
  EXPECT_GE(large, before + static_cast<int64_t>(kMebibytes << 20) / 2);
  EXPECT_GE(peaks.bytes(), large) << "of the phase that has ended";
  const int64_t small = peaks.end_phase();
  EXPECT_GT(small, 0);
  EXPECT_GE(peaks.bytes(), large);
  if (small == large) GTEST_SKIP() << "this system does not reset peaks";
  EXPECT_LT(small, large - static_cast<int64_t>(kMebibytes << 20) / 2);
}

TEST(Machine, Mebibytes) { EXPECT_EQ(mebibytes(3 << 19), 1.5); }

}  // namespace
}  // namespace sparsight::machine_test
