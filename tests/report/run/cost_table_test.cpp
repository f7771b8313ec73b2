#include "sparsight/report/run/cost_table.h"

#include <gtest/gtest.h>

namespace sparsight::cost_table_test {

TEST(CostTable, EndsWithTheSumsAndTheFlopsByTheConvention) {
  const Cost stem{
      .multiply_adds = 1234567, .elementwise = 16, .parameters = 448, .active_parameters = 40, .weight_bytes = 1792},
      head{.multiply_adds = 640, .elementwise = 1, .parameters = 641, .active_parameters = 641, .weight_bytes = 2564};
  EXPECT_EQ(cost_table({{"stem", stem, "16x64x64"}, {"head", head, "1"}}, {"two", "two for each", 2}),
            "  part  output    parameters  active  weight bytes  multiply-adds  elementwise\n"
            "  stem  16x64x64         448      40         1,792      1,234,567           16\n"
            "  head  1                641     641         2,564            640            1\n"
            "  all                  1,089     681         4,356      1,235,207           17\n"
            "  FLOPs per image: 2,470,414 (two: two for each)\n");
}

TEST(CostTable, MarksWhatIsAssumed) {
  Cost own;
  own.assumed = true;
  const std::string table = cost_table({{"stem", {}}, {"own", own}}, {"all", "everything"});
  EXPECT_NE(table.find("  own * "), std::string::npos) << table;
  EXPECT_EQ(table.find("  stem * "), std::string::npos) << table;
  EXPECT_NE(table.find("  * reports no cost of its own: "), std::string::npos) << table;
}

}  // namespace sparsight::cost_table_test
