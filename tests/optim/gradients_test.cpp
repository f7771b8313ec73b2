#include "sparsight/optim/gradients.h"

#include <cmath>
#include <limits>

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

namespace sparsight::gradients_test {
namespace {

at::Tensor with_gradient(at::Tensor gradient) {
  at::Tensor parameter = at::tensor({0.0f, 0.0f});
  parameter.mutable_grad() = std::move(gradient);
  return parameter;
}

TEST(Gradients, NormIsTakenOverAllParametersTogether) {
  const std::vector<at::Tensor> parameters{with_gradient(at::tensor({3.0f, 0.0f})),
                                           with_gradient(at::tensor({0.0f, 4.0f})), at::tensor({9.0f})};
  EXPECT_DOUBLE_EQ(gradient_norm(parameters), 5);
  EXPECT_EQ(clip_factor(5, 10), 1);
  EXPECT_EQ(clip_factor(5, 5), 1);
  EXPECT_DOUBLE_EQ(clip_factor(5, 1), 0.2);
}

TEST(Gradients, NormShowsNonFiniteGradients) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(gradient_norm({with_gradient(at::tensor({1.0f, nan}))})));
}

}  // namespace
}  // namespace sparsight::gradients_test
