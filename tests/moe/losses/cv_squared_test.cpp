#include "sparsight/moe/losses/importance.h"

#include <gtest/gtest.h>

#include "tests/support/gradcheck.h"
#include "tests/support/random_tensor.h"

namespace sparsight::cv_squared_test {

TEST(CvSquared, OfHandMadeVectors) {
  // mean 2, squared differences 1 1 1 1: 1 / 4
  EXPECT_DOUBLE_EQ(cv_squared(torch::tensor({1., 3., 1., 3.}, torch::kDouble)).item<double>(), 0.25);
  // mean 1, squared differences 9 1 1 1: 3
  EXPECT_DOUBLE_EQ(cv_squared(torch::tensor({4., 0., 0., 0.}, torch::kDouble)).item<double>(), 3);
  // mean 2, squared differences 1 1 0: 2 over 3 (or over 2), divided by 4
  const at::Tensor three = torch::tensor({3., 1., 2.}, torch::kDouble);
  EXPECT_NEAR(cv_squared(three).item<double>(), 1.0 / 6, 1e-12);
  EXPECT_NEAR(cv_squared(three, /*unbiased=*/true).item<double>(), 0.25, 1e-12);
}

TEST(CvSquared, S42_IsZeroWithZeroGradientForOneExpertAndForAnEmptyBatch) {
  for (const auto type : {torch::kFloat, torch::kDouble})
    for (at::Tensor v : {torch::tensor({5.}, type), torch::zeros({4}, type)}) {
      v.requires_grad_(true);
      const at::Tensor loss = cv_squared(v);
      loss.backward();
      EXPECT_EQ(loss.item<double>(), 0);
      EXPECT_TRUE(torch::equal(v.grad(), torch::zeros_like(v)));
    }
}

TEST(CvSquared, KeepsItsDigitsNearBalanceInFp32) {
  // mean 1000, squared differences 0.0625 each: 6.25e-8. E[v²] - mean² in fp32 has a rounding error of 0.06.
  EXPECT_NEAR(cv_squared(torch::tensor({1000.25f, 999.75f})).item<double>(), 6.25e-8, 1e-13);
}

TEST(CvSquared, HasTheRightGradientAlsoAtBalance) {
  at::Tensor v = test::random_tensor({6}, 1).abs();
  EXPECT_LT(test::gradient_error([&] { return cv_squared(v); }, {v}), 1e-7);
  at::Tensor even = torch::full({6}, 2., torch::kDouble);
  EXPECT_LT(test::gradient_error([&] { return cv_squared(even); }, {even}), 1e-7);
}

}  // namespace sparsight::cv_squared_test
