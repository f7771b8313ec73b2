// Each test runs in a process of its own, since the allocator is for all tensors of a process.
#include "sparsight/ops/caching_allocator.h"
#include "tests/support/sanitizers.h"

#include <sys/resource.h>

#include <cstdint>
#include <thread>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace sparsight::caching_allocator_test {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;

at::Tensor bytes(int64_t count) { return at::empty({count}, at::kByte); }

int64_t mapped_pages() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

// Pages that the system maps while 8 MiB, which are 2,048 pages of 4 KiB, are allocated, written and freed 20 times.
int64_t pages_of_steps() {
  const int64_t before = mapped_pages();
  for (int i = 0; i < 20; ++i) bytes(8 * kMebibyte).fill_(i);
  return mapped_pages() - before;
}

// In the child process of a death test: exit code 0 if no check failed.
#define CHECKED(condition)   \
  if (!(condition)) {        \
    std::cerr << #condition; \
    std::exit(1);            \
  }

void expect_pages_are_mapped_once() {
  for (int i = 0; i < 2; ++i) bytes(64 * kMebibyte);  // glibc now takes 8 MiB from its heap, and trims that
  const int64_t returned = pages_of_steps();
  use_caching_allocator();
  const int64_t kept = pages_of_steps();
  std::cerr << returned << " and " << kept << " pages";
  CHECKED(kept < 2 * 2048);
  std::exit(0);
}

void expect_bounds() {
  use_caching_allocator();
  { const at::Tensor a = bytes(8 * kMebibyte), b = bytes(8 * kMebibyte); }
  CHECKED(caching_allocator_bytes().in_use == 0);
  CHECKED(caching_allocator_bytes().cached == 16 * kMebibyte);
  CHECKED(caching_allocator_bytes().most_in_use == 16 * kMebibyte);
  {  // fits into twice 16 MiB beside what is cached
    const at::Tensor other = bytes(12 * kMebibyte);
    CHECKED(caching_allocator_bytes().cached == 16 * kMebibyte);
    const at::Tensor more = bytes(6 * kMebibyte);  // does not: the oldest block goes
    CHECKED(caching_allocator_bytes().cached == 8 * kMebibyte);
    const at::Tensor same = bytes(8 * kMebibyte - 5);  // of the class of the other one
    CHECKED(caching_allocator_bytes().cached == 0);
    CHECKED(caching_allocator_bytes().in_use == 26 * kMebibyte);
  }
  release_cached_blocks();
  CHECKED(caching_allocator_bytes().cached == 0);
  CHECKED(caching_allocator_bytes().most_in_use == 0);
  std::exit(0);
}

void expect_tensors_work() {
  const at::Tensor earlier = at::full({100000}, 3);
  use_caching_allocator();
  use_caching_allocator();  // again: no effect
  CHECKED(at::empty({0}).numel() == 0);
  for (const int64_t count : {1, 100, 65535, 65536, 65537, 1000000}) {
    at::Tensor x = at::arange(count, at::kLong);
    CHECKED(reinterpret_cast<uintptr_t>(x.data_ptr()) % 64 == 0);
    x.resize_({3 * count});
    CHECKED(x[count - 1].item<int64_t>() == count - 1);
    CHECKED(x.clone().narrow(0, 0, count).sum().item<int64_t>() == count * (count - 1) / 2);
  }
  CHECKED(earlier.sum().item<int64_t>() == 300000);
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (int64_t i = 0; i < 300; ++i) {
        const at::Tensor x = at::full({16384 + (i % 7) * 4096}, 4 * i + t, at::kInt);
        CHECKED((x == 4 * i + t).all().item<bool>());
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::exit(0);
}

class CachingAllocator : public ::testing::Test {
 protected:
  void SetUp() override {
    if (test::kAddressSanitizer) GTEST_SKIP() << "the address sanitizer keeps its own allocator";
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
};

}  // namespace

TEST_F(CachingAllocator, MapsPagesOnce) {
  EXPECT_EXIT(expect_pages_are_mapped_once(), ::testing::ExitedWithCode(0), "pages");
}

TEST_F(CachingAllocator, KeepsAtMostAsMuchAgain) { EXPECT_EXIT(expect_bounds(), ::testing::ExitedWithCode(0), ""); }

TEST_F(CachingAllocator, ServesTensorsOfAnySizeAndThread) {
  EXPECT_EXIT(expect_tensors_work(), ::testing::ExitedWithCode(0), "");
}

}  // namespace sparsight::caching_allocator_test
