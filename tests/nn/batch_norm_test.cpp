#include "sparsight/nn/batch_norm.h"

#include <gtest/gtest.h>

#include "tests/support/gradcheck.h"
#include "tests/support/random_tensor.h"

namespace sparsight::batch_norm_test {

// One channel with the values 1, 2, 3, 6: mean 3, variance 14/4 = 3.5, unbiased 14/3.
TEST(BatchNorm, P29_TrainsOnTheBatchAndKeepsRunningAverages) {
  BatchNorm norm(BatchNormOptions{.channels = 1, .debias = false});
  initialize(*norm, 1);
  const at::Tensor x = torch::tensor({1., 2., 3., 6.}, torch::kFloat).view({2, 1, 1, 2});
  const at::Tensor y = norm->forward(x, true), expected = (x - 3) / std::sqrt(3.5 + 1e-3);
  EXPECT_TRUE(torch::allclose(y, expected, 1e-6, 1e-6));
  EXPECT_NEAR(norm->tensors.running_mean.item<double>(), 0.01 * 3, 1e-7);
  EXPECT_NEAR(norm->tensors.running_var.item<double>(), 0.99 + 0.01 * 14 / 3, 1e-6);
  const double mean = 0.03, variance = 0.99 + 0.01 * 14 / 3;
  EXPECT_TRUE(torch::allclose(norm->forward(x, false), (x - mean) / std::sqrt(variance + 1e-3), 1e-5, 1e-5));
  EXPECT_NEAR(norm->tensors.running_mean.item<double>(), 0.03, 1e-7);  // evaluation changes nothing
}

// Batches with means 3 and 6 and unbiased variances 14/3 and 56/3 (the values above, and twice those). The second mean,
// with the first one's age of 1: (0.99 * 3 + 6) / 1.99. Without bias correction the first would leave 0.03 and 1.037.
TEST(BatchNorm, RunningAveragesBeginWithTheFirstBatch) {
  BatchNorm norm(BatchNormOptions{1});
  initialize(*norm, 1);
  const at::Tensor x = torch::tensor({1., 2., 3., 6.}, torch::kFloat).view({2, 1, 1, 2});
  norm->forward(x, true);
  EXPECT_NEAR(norm->tensors.running_mean.item<double>(), 3, 1e-6);
  EXPECT_NEAR(norm->tensors.running_var.item<double>(), 14. / 3, 1e-6);
  norm->forward(2 * x, true);
  EXPECT_NEAR(norm->tensors.running_mean.item<double>(), (0.99 * 3 + 6) / 1.99, 1e-6);
  EXPECT_NEAR(norm->tensors.running_var.item<double>(), (0.99 * 14 + 56) / 3 / 1.99, 1e-5);
  EXPECT_EQ(norm->tensors.batches.item<int64_t>(), 2);
  norm->forward(x, false);
  EXPECT_EQ(norm->tensors.batches.item<int64_t>(), 2);
}

// The limit of the correction: with a momentum of 1 the plain mean, far from the start the momentum itself.
TEST(BatchNorm, KeepsTheMomentumsShareInTheEnd) {
  EXPECT_EQ(kept_fraction({.momentum = 0.9}, 0), 0);
  EXPECT_NEAR(kept_fraction({.momentum = 0.9}, 1), 0.9 / 1.9, 1e-15);
  EXPECT_NEAR(kept_fraction({.momentum = 1}, 3), 0.75, 1e-15);
  EXPECT_NEAR(kept_fraction({.momentum = 1 - 1e-9}, 3), 0.75, 1e-6);
  EXPECT_EQ(kept_fraction({.momentum = 0.9}, 1000), 0.9);
  EXPECT_EQ(kept_fraction({.momentum = 0.9, .debias = false}, 0), 0.9);
  EXPECT_EQ(kept_fraction({.momentum = 0}, 0), 0);
}

TEST(BatchNorm, GradientsFollowDifferences) {
  for (const bool training : {true, false}) {
    BatchNorm norm(BatchNormOptions{3});
    initialize(*norm, 1);
    norm->to(torch::kDouble);
    const at::Tensor x = test::random_tensor({2, 3, 2, 2}, 1), upstream = test::random_tensor({2, 3, 2, 2}, 2);
    std::vector<at::Tensor> inputs = norm->parameters();
    inputs.push_back(x);
    EXPECT_LT(test::gradient_error([&] { return (norm->forward(x, training) * upstream).sum(); }, inputs), 1e-7)
        << training;
  }
}

TEST(BatchNorm, ComputesReducedTypesInFp32) {
  BatchNorm norm(BatchNormOptions{4});
  initialize(*norm, 1);
  const at::Tensor x = test::random_tensor({8, 4, 3, 3}, 1, torch::kFloat).to(torch::kBFloat16);
  const at::Tensor exact = norm->forward(x.to(torch::kFloat), true), y = norm->forward(x, true);
  EXPECT_EQ(y.scalar_type(), torch::kBFloat16);
  EXPECT_TRUE(torch::equal(y, exact.to(torch::kBFloat16)));
}

}  // namespace sparsight::batch_norm_test
