#include "sparsight/papers/pmoe/two_layer/value_function.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

namespace sparsight::pmoe::value_function_test {

// y f = 2 and -1 (wrong) for class 0, which f < 0 predicts; 0 (wrong) and 3 for class 1.
TEST(ValueFunction, ByHand) {
  const ValueFunction found =
      value_function(torch::tensor({-2., 1., 0., 3.}, torch::kDouble), torch::tensor({0, 0, 1, 1}, torch::kLong));
  EXPECT_NEAR(found.value[0], (1 / (1 + std::exp(2.)) + 1 / (1 + std::exp(-1.))) / 2, 1e-15);
  EXPECT_NEAR(found.value[1], (0.5 + 1 / (1 + std::exp(3.))) / 2, 1e-15);
  EXPECT_EQ(found.error[0], 0.5);
  EXPECT_EQ(found.error[1], 0.5);
}

// The checks inside pass for any outputs, also large ones and a class without samples.
TEST(ValueFunction, P69_HoldsOnAnySet) {
  torch::manual_seed(1);
  for (const double scale : {1e-3, 1., 30., 1e4})
    for (int64_t i = 0; i < 20; ++i) {
      const at::Tensor labels = torch::randint(2, {50}, torch::kLong);
      const at::Tensor f =
          scale * (torch::randn({50}, torch::kDouble) + 0.1 * static_cast<double>(i) * (2 * labels - 1));
      const ValueFunction found = value_function(f, labels);
      for (size_t k = 0; k < 2; ++k) EXPECT_LE(found.error[k], 2 * found.value[k] + 1e-12);
    }
  const ValueFunction one_class = value_function(-torch::ones({3}, torch::kDouble), torch::zeros({3}, torch::kLong));
  EXPECT_EQ(one_class.error[0], 0);
  EXPECT_EQ(one_class.value[1], 0);
}

}  // namespace sparsight::pmoe::value_function_test
