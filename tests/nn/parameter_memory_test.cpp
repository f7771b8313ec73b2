#include "sparsight/nn/parameter_memory.h"

#include <limits>

#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace sparsight::parameter_memory_test {

TEST(ParameterBound, CountsFourBytesForEachValueUntilTheBoundIsReached) {
  const ParameterBound bound(4 * (6 + 4), "too large");
  EXPECT_EQ(parameter_zeros({2, 3}).numel(), 6);
  EXPECT_EQ(testing::message_of([] { parameter_zeros({5}); }), "too large");
}

TEST(ParameterBound, HoldsSizesWhoseProductDoesNotFitAnInteger) {
  const ParameterBound bound(std::numeric_limits<int64_t>::max(), "too large");
  const int64_t huge = int64_t{1} << 40;
  EXPECT_EQ(testing::message_of([&] { parameter_zeros({huge, huge, huge}); }), "too large");
}

TEST(ParameterBound, TheInnermostHoldsWhileItLives) {
  const ParameterBound outer(400, "outer");
  {
    const ParameterBound inner(4, "inner");
    EXPECT_EQ(testing::message_of([] { parameter_zeros({2}); }), "inner");
  }
  EXPECT_EQ(parameter_zeros({100}).numel(), 100);
  EXPECT_EQ(testing::message_of([] { parameter_zeros({1}); }), "outer");
}

}  // namespace sparsight::parameter_memory_test
