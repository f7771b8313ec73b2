#include "sparsight/core/freed_memory.h"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>

namespace sparsight::freed_memory_test {
namespace {

// Pages that the system had to map while 8 MB were allocated, written and freed 20 times. In a process of its own, as
// the settings of malloc are for all of it.
int64_t mapped_pages(bool keep) {
  int ends[2];
  if (pipe(ends) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    if (keep) keep_freed_memory();
    constexpr size_t kBytes = 8 << 20;
    rusage before{}, after{};
    getrusage(RUSAGE_SELF, &before);
    for (int i = 0; i < 20; ++i) {
      const std::unique_ptr<char[]> memory(new char[kBytes]);
      std::memset(memory.get(), i, kBytes);
      asm volatile("" : : "r"(memory.get()) : "memory");
    }
    getrusage(RUSAGE_SELF, &after);
    const int64_t pages = after.ru_minflt - before.ru_minflt;
    _exit(write(ends[1], &pages, sizeof pages) == sizeof pages ? 0 : 1);
  }
  int64_t pages = -1;
  const bool got = read(ends[0], &pages, sizeof pages) == sizeof pages;
  waitpid(child, nullptr, 0);
  close(ends[0]), close(ends[1]);
  return got ? pages : -1;
}

}  // namespace

// 8 MB are 2048 pages of 4 KB: mapped once, not 20 times.
TEST(FreedMemory, IsMappedOnceWhenItIsKept) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer's malloc has no such settings";
#endif
  const int64_t kept = mapped_pages(true), returned = mapped_pages(false);
  EXPECT_GT(kept, 0);
  EXPECT_LT(kept, 2 * 2048);
  EXPECT_GT(returned, kept);
}

}  // namespace sparsight::freed_memory_test
