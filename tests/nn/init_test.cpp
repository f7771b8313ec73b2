#include "sparsight/nn/init.h"

#include <gtest/gtest.h>

#include "sparsight/nn/mlp.h"

namespace sparsight::init_test {
namespace {

// Two MLPs in one module: equal shapes at different paths.
struct Pair : torch::nn::Module {
  Mlp a = register_module("a", Mlp(MlpOptions{64, 128}));
  Mlp b = register_module("b", Mlp(MlpOptions{64, 128}));
};

at::Tensor weight(const torch::nn::Module& module, const std::string& name) { return module.named_parameters()[name]; }

}  // namespace

TEST(Initialize, DependsOnSeedAndPathOnly) {
  Pair one, two, other;
  initialize(one, 1);
  initialize(two, 1);
  initialize(other, 2);
  EXPECT_TRUE(torch::equal(weight(one, "a.fc1.weight"), weight(two, "a.fc1.weight")));
  EXPECT_FALSE(torch::equal(weight(one, "a.fc1.weight"), weight(one, "b.fc1.weight")));
  EXPECT_FALSE(torch::equal(weight(one, "a.fc1.weight"), weight(other, "a.fc1.weight")));
}

TEST(Initialize, GivesLinearLayersTheirSpreadAndNoBias) {
  Pair pair;
  initialize(pair, 1);
  const at::Tensor w = weight(pair, "a.fc1.weight");  // 8192 samples of N(0, 0.02²)
  EXPECT_NEAR(w.mean().item<double>(), 0, 4 * 0.02 / std::sqrt(8192));
  EXPECT_NEAR(w.std().item<double>(), 0.02, 4 * 0.02 / std::sqrt(2 * 8192));
  EXPECT_EQ(weight(pair, "a.fc1.bias").abs().max().item<double>(), 0);
}

TEST(Initialize, GivesTheSameValuesInEveryType) {
  Pair single, half;
  half.to(torch::kBFloat16);
  initialize(single, 1);
  initialize(half, 1);
  EXPECT_TRUE(torch::equal(weight(single, "b.fc2.weight").to(torch::kBFloat16), weight(half, "b.fc2.weight")));
}

}  // namespace sparsight::init_test
