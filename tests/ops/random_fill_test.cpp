#include "sparsight/ops/random_fill.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>

namespace sparsight::random_fill_test {

TEST(RandomFill, NormalHasTheMomentsOfTheNormalDistribution) {
  const int64_t n = 400000;
  const at::Tensor x = normal_like(torch::empty({0}, torch::kDouble), {n}, RandomStream(1, "noise"));
  const auto moment = [&](int power) { return x.pow(power).mean().item<double>(); };
  // Standard errors of the moments of N(0,1): 1, sqrt(2), sqrt(15), sqrt(96) over sqrt(n).
  EXPECT_NEAR(moment(1), 0, 4 * std::sqrt(1.0 / n));
  EXPECT_NEAR(moment(2), 1, 4 * std::sqrt(2.0 / n));
  EXPECT_NEAR(moment(3), 0, 4 * std::sqrt(15.0 / n));
  EXPECT_NEAR(moment(4), 3, 4 * std::sqrt(96.0 / n));
  // Neighbours come from one Box-Muller pair: they must not be correlated.
  EXPECT_NEAR((x.slice(0, 0, n - 1) * x.slice(0, 1)).mean().item<double>(), 0, 4 * std::sqrt(1.0 / n));
}

TEST(RandomFill, DoesNotDependOnLengthOrThreads) {
  const RandomStream stream(2, "noise", 5);
  const at::Tensor like = torch::empty({0});
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor one = normal_like(like, {10007}, stream);
  at::set_num_threads(threads + 1);
  const at::Tensor many = normal_like(like, {20001}, stream);
  at::set_num_threads(threads);
  EXPECT_TRUE(torch::equal(one, many.slice(0, 0, 10007)));
}

TEST(RandomFill, KeepMaskKeepsTheRightShareAndTheMean) {
  const int64_t n = 200000;
  const at::Tensor mask = keep_mask_like(torch::empty({0}), {n}, 0.8, RandomStream(3, "dropout"));
  const double kept = (mask > 0).to(torch::kDouble).mean().item<double>();
  EXPECT_NEAR(kept, 0.8, 4 * std::sqrt(0.8 * 0.2 / n));
  EXPECT_FLOAT_EQ(mask.max().item<float>(), 1.25f);  // 1 / 0.8
  EXPECT_EQ(mask.min().item<float>(), 0);
}

TEST(RandomFill, UniformStaysInItsRange) {
  at::Tensor x = torch::empty({100000}, torch::kFloat);
  fill_uniform(x, RandomStream(4, "init"), -3, 1);
  EXPECT_GE(x.min().item<float>(), -3);
  EXPECT_LE(x.max().item<float>(), 1);
  EXPECT_NEAR(x.mean().item<double>(), -1, 4 * 4 / std::sqrt(12.0 * 100000));
}

// Element 4585376 of this stream is 0xffffff9a / 2^32, which is nearer to 1 than to any fp32 number below.
TEST(RandomFill, UniformStaysBelowItsUpperEnd) {
  for (const at::ScalarType type : {torch::kFloat, torch::kDouble}) {
    at::Tensor x = torch::empty({1}, type);
    fill_uniform(x, RandomStream(4, "init"), 0, 1, 4585376);
    EXPECT_GT(x.item<double>(), 1 - 1e-7);
    EXPECT_LT(x.item<double>(), 1);
  }
}

}  // namespace sparsight::random_fill_test
