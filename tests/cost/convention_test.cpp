#include "sparsight/cost/convention.h"

#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "tests/support/errors.h"

namespace sparsight::convention_test {

TEST(CostConvention, SaysWhatAMultiplyAddAndAnElementCountAs) {
  const Cost cost{.multiply_adds = 100, .elementwise = 7};
  EXPECT_EQ(flops(cost, cost_convention("multiply_adds")), 100);
  EXPECT_EQ(flops(cost, cost_convention("multiply_adds_padded")), 100);
  EXPECT_EQ(flops(cost, cost_convention("flops")), 200);
  EXPECT_EQ(flops(cost, cost_convention("flops_padded")), 200);
  EXPECT_EQ(flops(cost, cost_convention("flops_elementwise")), 207);
}

TEST(CostConvention, AnUnknownNameListsTheKnownOnes) {
  const std::string message = testing::error_text<UsageError>([] { cost_convention("flop"); });
  EXPECT_NE(message.find("\"flops\""), std::string::npos) << message;
  EXPECT_NE(message.find("multiply_adds_padded"), std::string::npos) << message;
}

}  // namespace sparsight::convention_test
