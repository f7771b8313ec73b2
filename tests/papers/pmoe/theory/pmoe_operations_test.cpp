#include "sparsight/papers/pmoe/theory/pmoe_operations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/errors.h"

namespace sparsight::pmoe::pmoe_operations_test {

using testing::error_text;

// Sizes of figure 4: n = 16, d = 784, m = 40.
TEST(PmoeOperations, P64_CountsMatchTheFormulas) {
  const PmoeOperations separate =
      count_pmoe_operations(PmoeTraining::separate, {16, 2, 2, 40, 784}, RouterGradient::pairs);
  EXPECT_EQ(separate.routers_forward, 2 * 16 * 784);  // k n d = 25,088
  EXPECT_EQ(separate.experts_forward, 40 * 2 * 784);  // m l d = 62,720
  EXPECT_EQ(separate.experts_backward, 40 * 2 * 784);
  EXPECT_EQ(separate.routers_backward, 0);

  const PmoeSizes sizes{16, 6, 8, 40, 784};
  const PmoeOperations joint = count_pmoe_operations(PmoeTraining::joint, sizes, RouterGradient::pairs);
  EXPECT_EQ(joint.routers_forward, 8 * 16 * 784);  // k n d = 100,352
  EXPECT_EQ(joint.experts_forward, 40 * 6 * 784);  // m l d = 188,160
  EXPECT_EQ(joint.experts_backward, 40 * 6 * 784);
  EXPECT_EQ(joint.routers_backward, 8 * 6 * 5 * 784);  // k l (l - 1) d
  EXPECT_EQ(count_pmoe_operations(PmoeTraining::joint, sizes, RouterGradient::mean).routers_backward,
            2 * 8 * 6 * 784);  // k l d for the mean, k l d for the differences from it

  const PmoeOperations cnn = count_pmoe_operations(PmoeTraining::cnn, {16, 2, 2, 40, 784}, RouterGradient::pairs);
  EXPECT_EQ(cnn.routers_forward, 0);
  EXPECT_EQ(cnn.experts_forward, 40 * 16 * 784);  // m n d = 501,760
  EXPECT_EQ(cnn.experts_backward, 40 * 16 * 784);
}

TEST(PmoeOperations, P12_BothFormsOfTheRouterGradientAgree) {
  const PmoeSizes sizes{9, 4, 2, 6, 5};
  const auto pairs = count_pmoe_operations(PmoeTraining::joint, sizes, RouterGradient::pairs, 3).router_gradients;
  const auto mean = count_pmoe_operations(PmoeTraining::joint, sizes, RouterGradient::mean, 3).router_gradients;
  double largest = 0;
  for (size_t s = 0; s < pairs.size(); ++s)
    for (size_t i = 0; i < pairs[s].size(); ++i) {
      EXPECT_NEAR(pairs[s][i], mean[s][i], 1e-12);
      largest = std::max(largest, std::abs(pairs[s][i]));
    }
  EXPECT_GT(largest, 1e-4);
}

TEST(PmoeOperations, RefusesSizesThatDoNotFit) {
  const auto message = [](const PmoeSizes& sizes) {
    return error_text<UsageError>([&] { count_pmoe_operations(PmoeTraining::joint, sizes, RouterGradient::mean); });
  };
  EXPECT_EQ(message({16, 6, 7, 40, 8}), "40 neurons cannot be split evenly among 7 experts");
  EXPECT_EQ(message({16, 17, 8, 40, 8}), "17 of 16 patches cannot be chosen");
  EXPECT_EQ(message({16, 2, 8, 40, 0}), "patches need a width of 1 or more, got 0");
}

}  // namespace sparsight::pmoe::pmoe_operations_test
