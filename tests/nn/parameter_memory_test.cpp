#include "sparsight/nn/parameter_memory.h"

#include <limits>

#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace sparsight::parameter_memory_test {

TEST(ParameterBound, CountsFourBytesForEachValueUntilTheBoundIsReached) {
  const ParameterBound bound(4 * (6 + 4), "too large");
  EXPECT_EQ(parameter_zeros({2, 3}).numel(), 6);
  EXPECT_TRUE(testing::error_text([] { parameter_zeros({5}); }).starts_with("too large"));
}

TEST(ParameterBound, SaysWhatWasAskedFor) {
  const ParameterBound bound(4, "too large");
  EXPECT_EQ(testing::error_text([] {
              parameter_zeros({1 << 16, 1 << 14});
            }),
            "too large (the parameter of shape [65536, 16384], 4 GB, does not fit)");
}

TEST(ParameterBound, KnowsTheMemoryThatIsFree) {
  const ParameterBound bound = bound_to_free_memory("layer");
  EXPECT_EQ(parameter_zeros({100}).numel(), 100);
  const std::string message = testing::error_text([] { parameter_zeros({1 << 20, 1 << 20, 1 << 10}); });
  EXPECT_TRUE(message.starts_with("the parameters of the layer need more than the ")) << message;
}

TEST(ParameterBound, HoldsSizesWhoseProductDoesNotFitAnInteger) {
  const ParameterBound bound(std::numeric_limits<int64_t>::max(), "too large");
  const int64_t huge = int64_t{1} << 40;
  EXPECT_TRUE(testing::error_text([&] { parameter_zeros({huge, huge, huge}); }).starts_with("too large"));
}

TEST(ParameterBound, TheInnermostHoldsWhileItLives) {
  const ParameterBound outer(400, "outer");
  {
    const ParameterBound inner(4, "inner");
    EXPECT_TRUE(testing::error_text([] { parameter_zeros({2}); }).starts_with("inner"));
  }
  EXPECT_EQ(parameter_zeros({100}).numel(), 100);
  EXPECT_TRUE(testing::error_text([] { parameter_zeros({1}); }).starts_with("outer"));
}

TEST(MetaParameters, HaveShapesAndNoMemory) {
  const ParameterBound bound(4, "too large");
  {
    const MetaParameters without_memory;
    const at::Tensor large = parameter_zeros({int64_t{1} << 20, int64_t{1} << 20, 1 << 10});
    EXPECT_TRUE(large.is_meta());
    EXPECT_EQ(large.numel(), int64_t{1} << 50);
    const int64_t huge = int64_t{1} << 40;
    EXPECT_TRUE(testing::error_text([&] { parameter_zeros({huge, huge}); }).starts_with("a parameter of shape ["));
    { const MetaParameters nested; }
    EXPECT_TRUE(parameter_zeros({5}).is_meta());
  }
  EXPECT_FALSE(parameter_zeros({1}).is_meta());
  EXPECT_TRUE(testing::error_text([] { parameter_zeros({1}); }).starts_with("too large"));
}

}  // namespace sparsight::parameter_memory_test
