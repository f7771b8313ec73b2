#include "sparsight/nn/whitening.h"

#include <gtest/gtest.h>

#include <cmath>

#include <ATen/ATen.h>

#include "sparsight/core/error.h"
#include "tests/support/random_tensor.h"
#include "tests/support/thread_count.h"

namespace sparsight::whitening_test {

// One channel and a kernel of 1: the second moment of the pixels 1, -1, 3, 1 is 3, so the filters are +- 1 / sqrt(3 +
// 1).
TEST(Whitening, DividesByTheRootOfTheSecondMoment) {
  const at::Tensor filters = whitening_filters(at::tensor({1.0F, -1.0F, 3.0F, 1.0F}).view({1, 1, 2, 2}), 1, 1);
  ASSERT_EQ(filters.sizes(), at::IntArrayRef({2, 1, 1, 1}));
  EXPECT_NEAR(filters.abs().min().item<double>(), 0.5, 1e-7);
  EXPECT_NEAR(filters.abs().max().item<double>(), 0.5, 1e-7);
  EXPECT_EQ(filters.sum().item<double>(), 0);
}

// The outputs for correlated channels, x and x + y, have moments of v / (v + epsilon), and no common ones.
TEST(Whitening, OutputsAreUncorrelatedAndOfEqualVariance) {
  const at::Tensor x = test::random_tensor({40, 1, 8, 8}, 1, at::kFloat),
                   y = test::random_tensor({40, 1, 8, 8}, 2, at::kFloat);
  const at::Tensor images = at::cat({x, x + 0.1 * y}, 1), filters = whitening_filters(images, 2, 1e-9);
  ASSERT_EQ(filters.sizes(), at::IntArrayRef({16, 2, 2, 2}));
  const at::Tensor out = at::conv2d(images, filters.narrow(0, 0, 8)).transpose(0, 1).flatten(1).to(at::kDouble);
  const at::Tensor moments = at::matmul(out, out.t()) / static_cast<double>(out.size(1));
  EXPECT_LT((moments - at::eye(8, at::kDouble)).abs().max().item<double>(), 1e-4);
  EXPECT_TRUE(at::equal(filters.narrow(0, 8, 8), -filters.narrow(0, 0, 8)));
}

TEST(Whitening, HasTheSameBitsForAnyNumberOfThreads) {
  const at::Tensor images = test::random_tensor({30, 3, 16, 16}, 1, at::kFloat);
  at::Tensor first;
  for (const int threads : {1, 2, 4}) {
    const test::ThreadCount some(threads);
    const at::Tensor filters = whitening_filters(images, 3, 5e-4);
    if (!first.defined()) first = filters;
    EXPECT_TRUE(at::equal(filters, first)) << threads;
  }
}

// A channel that is always 0, as the border of MNIST nearly is, has moments of 0.
TEST(Whitening, StaysFiniteWherePixelsNeverChange) {
  const at::Tensor filters = whitening_filters(at::zeros({2, 1, 4, 4}), 3, 5e-4);
  EXPECT_NEAR(filters.abs().max().item<double>(), 1 / std::sqrt(5e-4), 1e-3);
}

TEST(Whitening, RefusesImagesSmallerThanTheKernel) {
  EXPECT_THROW(whitening_filters(at::zeros({1, 1, 2, 8}), 3, 1e-3), UsageError);
}

}  // namespace sparsight::whitening_test
