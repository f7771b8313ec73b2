#include "sparsight/reproduce/sample_search.h"

#include <gtest/gtest.h>

namespace sparsight::sample_search_test {
namespace {

TEST(SampleSearch, FindsTheFirstSizeThatMostlySucceeds) {
  int64_t trials_run = 0;
  const auto from = [&](int64_t first) {
    return [&trials_run, first](int64_t size, int64_t) { return ++trials_run, size >= first; };
  };
  const std::vector<int64_t> sizes = {4, 8, 16, 32, 64};
  EXPECT_EQ(smallest_size(sizes, 3, from(16)), 16);
  EXPECT_LE(trials_run, 3 * 2);  // two of three trials decide
  EXPECT_EQ(smallest_size(sizes, 3, from(1)), 4);
  EXPECT_EQ(smallest_size(sizes, 3, from(33)), 64);
  EXPECT_EQ(smallest_size(sizes, 3, from(100)), std::nullopt);
  // Half of four trials are enough, of size 8 only the first two.
  EXPECT_EQ(smallest_size(sizes, 4, [](int64_t size, int64_t trial) { return size > 8 || (size == 8 && trial < 2); }),
            8);
}

}  // namespace
}  // namespace sparsight::sample_search_test
