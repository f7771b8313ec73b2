#include "sparsight/reproduce/sample_search.h"

#include <gtest/gtest.h>

namespace sparsight::sample_search_test {
namespace {

TEST(SampleSearch, FindsTheFirstSizeThatSucceeds) {
  int64_t tried = 0;
  const auto from = [&](int64_t first) { return [&tried, first](int64_t size) { return ++tried, size >= first; }; };
  const std::vector<int64_t> sizes = {4, 8, 16, 32, 64};
  EXPECT_EQ(smallest_size(sizes, from(16)), 16);
  EXPECT_LE(tried, 3);
  EXPECT_EQ(smallest_size(sizes, from(1)), 4);
  EXPECT_EQ(smallest_size(sizes, from(33)), 64);
  EXPECT_EQ(smallest_size(sizes, from(100)), std::nullopt);
}

}  // namespace
}  // namespace sparsight::sample_search_test
