#include "sparsight/report/cost_table.h"

#include <gtest/gtest.h>

namespace sparsight::cost_table_test {

TEST(CostTable, EndsWithTheSums) {
  EXPECT_EQ(cost_table({{"stem", {1234567, 448}, "16x64x64"}, {"head", {640, 641}, "1"}}),
            "  part  output    parameters  multiply-adds\n"
            "  stem  16x64x64         448      1,234,567\n"
            "  head  1                641            640\n"
            "  all                  1,089      1,235,207\n");
}

}  // namespace sparsight::cost_table_test
