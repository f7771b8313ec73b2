#include "sparsight/nn/weight_init.h"

#include <cmath>

#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "tests/support/errors.h"

namespace sparsight::weight_init_test {
namespace {

constexpr int64_t kIn = 50, kOut = 400;

struct Values {
  at::Tensor weight = torch::zeros({kIn, kOut}), bias = torch::ones({kOut});
  double std() const { return weight.std().item<double>(); }
  double max() const { return weight.abs().max().item<double>(); }
  double bias_max() const { return bias.abs().max().item<double>(); }
};

Values values(const WeightInit& options) {
  Values v;
  init_weights(v.weight, v.bias, {kIn, kOut}, options, RandomStream(1, "w"), RandomStream(1, "b"));
  EXPECT_NEAR(v.weight.mean().item<double>(), 0, 4 * v.std() / std::sqrt(kIn * kOut));
  return v;
}

// The standard deviation of 20,000 samples is within 4 / sqrt(2 * 20000) = 2 % of the distribution's.
void expect_std(const Values& v, double std) { EXPECT_NEAR(v.std() / std, 1, 0.02); }

}  // namespace

TEST(WeightInit, Normal) {
  const Values v = values({.init = "normal", .init_std = 0.05});
  at::Tensor same = torch::zeros({kIn, kOut});
  init_normal(same, 0.05, RandomStream(1, "w"));
  EXPECT_TRUE(torch::equal(v.weight, same));
  EXPECT_EQ(v.bias_max(), 0);
  expect_std(values({}), 0.02);
}

// A standard normal variable truncated at ±2 has the variance 1 - 2 * 2 φ(2) / (2 Φ(2) - 1) = 1 - 4 * 0.0539910 /
// 0.9544997 = 0.773741, its square root is 0.879626.
TEST(WeightInit, TruncatedNormal) {
  const Values v = values({.init = "trunc_normal", .init_std = 0.05});
  expect_std(v, 0.05 * 0.879626);
  EXPECT_LE(v.max(), 0.1 * (1 + 1e-6));
  EXPECT_GT(v.max(), 0.095);
  EXPECT_EQ(v.bias_max(), 0);
}

TEST(WeightInit, FanIn) {
  const Values v = values({.init = "fan_in"});
  expect_std(v, std::sqrt(1.0 / kIn));
  EXPECT_EQ(v.bias_max(), 0);
  expect_std(values({.init = "fan_in", .init_scale = 0.1}), std::sqrt(0.1 / kIn));
}

// U(-b, b) has the standard deviation b / sqrt(3).
TEST(WeightInit, XavierUniform) {
  const double bound = std::sqrt(6.0 / (kIn + kOut));
  const Values v = values({.init = "xavier_uniform"});
  expect_std(v, bound / std::sqrt(3));
  EXPECT_LE(v.max(), bound);
  EXPECT_EQ(v.bias_max(), 0);
}

TEST(WeightInit, TorchLinear) {
  const double bound = 1 / std::sqrt(kIn);
  const Values v = values({.init = "torch_linear"});
  expect_std(v, bound / std::sqrt(3));
  EXPECT_LE(v.max(), bound);
  EXPECT_LE(v.bias_max(), bound);
  EXPECT_NEAR(v.bias.std().item<double>() / (bound / std::sqrt(3)), 1, 4 / std::sqrt(2 * kOut));
  EXPECT_FALSE(torch::equal(v.weight[0], v.bias));
}

TEST(WeightInit, WithoutABias) {
  for (const char* init : {"normal", "trunc_normal", "fan_in", "xavier_uniform", "torch_linear"}) {
    at::Tensor weight = torch::zeros({kIn, kOut}, torch::kDouble), bias;
    init_weights(weight, bias, {kIn, kOut}, {.init = init}, RandomStream(1, "w"), RandomStream(1, "b"));
    EXPECT_GT(weight.std().item<double>(), 0) << init;
    EXPECT_FALSE(bias.defined());
  }
}

}  // namespace sparsight::weight_init_test
