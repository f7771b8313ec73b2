#include "sparsight/core/block_list.h"

#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "tests/support/errors.h"

namespace sparsight::block_list_test {
namespace {

using Lists = std::vector<std::vector<int64_t>>;

}  // namespace

TEST(BlockList, NegativeNumbersCountFromTheEnd) {
  EXPECT_EQ(block_indices({0, -1, 2, -4}, 4, "[moe]"), (std::vector<size_t>{0, 3, 2, 0}));
  EXPECT_TRUE(block_indices({}, 4, "[moe]").empty());
  for (const int64_t block : {4, -5})
    EXPECT_EQ(testing::error_text<UsageError>([&] {
                block_indices({1, block}, 4, "[moe]");
              }),
              cat("[moe] blocks: there is no block ", block, " in a model of 4 blocks; allowed are -4 to 3"));
}

TEST(BlockList, EachBlockIsInOneListAtMost) {
  EXPECT_EQ(list_of_each_block(Lists{{-1, 1}, {0}}, 4, "[[x]]"), (std::vector<int64_t>{1, 0, -1, 0}));
  EXPECT_EQ(list_of_each_block(Lists{{2, -1}}, 3, "[[x]]"), (std::vector<int64_t>{-1, -1, 0}));  // twice in one
  EXPECT_EQ(testing::error_text<UsageError>([] {
              list_of_each_block(Lists{{2}, {1, -1}}, 3, "[[x]]");
            }),
            "[[x]] has block 2 twice; list each block once");
}

}  // namespace sparsight::block_list_test
