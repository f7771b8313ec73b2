#include "sparsight/nn/norm.h"

#include <gtest/gtest.h>

#include "tests/support/random_tensor.h"

namespace sparsight::norm_test {

TEST(LayerNorm, NormalisesEachTokenByHand) {
  // mean 2, variance 2/3 (population): (1 - 2) / sqrt(2/3) = -1.224745 (epsilon 1e-6 changes the seventh digit)
  const at::Tensor y = LayerNorm(3)->forward(torch::tensor({{1., 2., 3.}, {10., 20., 30.}}));
  EXPECT_TRUE(torch::allclose(y, torch::tensor({{-1.224745, 0., 1.224745}, {-1.224745, 0., 1.224745}}), 0, 2e-6)) << y;
}

TEST(GroupNorm, NormalisesEachGroupOfChannelsOfEachImage) {
  const at::Tensor y = GroupNorm(2, 4)->forward(test::random_tensor({3, 4, 5, 5}, 1, torch::kFloat) * 7 + 3);
  const at::Tensor groups = y.reshape({3, 2, 50});
  EXPECT_LT(groups.mean(2).abs().max().item<double>(), 1e-5);
  EXPECT_LT((groups.var(2, false) - 1).abs().max().item<double>(), 1e-4);
}

}  // namespace sparsight::norm_test
