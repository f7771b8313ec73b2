#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "tests/optim/one_step.h"

namespace sparsight::factored_adam_test {
namespace {

using testing::expect_near, testing::step;
using Doubles = std::vector<double>;

at::Tensor matrix(const Doubles& values, at::ScalarType type) {
  return at::tensor(values, at::kDouble).view({2, 3}).to(type);
}

std::shared_ptr<Optimizer> make(std::vector<OptimizedParameter> parameters, const Json& settings = {}) {
  return optimizers().make("factored_adam", settings, "optimizer", std::move(parameters));
}

at::Tensor find_state(const Optimizer& optimizer, const std::string& name) {
  for (const auto& [key, tensor] : optimizer.state())
    if (key == name) return tensor;
  return {};
}

// The worked example of the specification: G, then G / 2, beta2 = 0.999, lr = 0.01.
const Doubles kGradient{.1, -.2, .3, .4, 0, -.1};
const Doubles kFirstStep{-0.003609, 0.014880, -0.014117, -0.013101, 0, 0.004270};
const Doubles kSecondStep{-0.002283, 0.009413, -0.008930, -0.008287, 0, 0.002701};

}  // namespace

// A step takes gradients and has none.
TEST(FactoredAdam, S38_ReproducesT17) {
  for (const auto type : {at::kDouble, at::kFloat}) {
    const double tolerance = type == at::kDouble ? 5.1e-7 : 1e-6;  // six decimals are given
    const at::Tensor value = at::zeros({2, 3}, type), gradient = matrix(kGradient, type);
    const auto optimizer = make({{"w", value, true}});
    expect_near(step(*optimizer, value, gradient, 0.01), kFirstStep, tolerance);
    expect_near(find_state(*optimizer, "w/row"), {0.000046667, 0.000056667}, 1e-9);
    expect_near(find_state(*optimizer, "w/column"), {0.000085000, 0.000020000, 0.000050000}, 1e-9);
    expect_near(step(*optimizer, value, gradient / 2, 0.01), kSecondStep, tolerance);
    expect_near(find_state(*optimizer, "w/row"), {0.000058287, 0.000070777}, 1e-9);
    expect_near(find_state(*optimizer, "w/column"), {0.000106165, 0.000024980, 0.000062450}, 1e-9);
  }
}

TEST(FactoredAdam, S38_StoresASumOfSidesForEachMatrix) {
  const at::Tensor matrix = at::zeros({20, 30}), experts = at::zeros({4, 20, 30}), kernel = at::zeros({20, 3, 2, 5});
  const auto optimizer = make({{"m", matrix, true}, {"experts.w1", experts, true}, {"k", kernel, true}});
  const auto stored = [&](const std::string& name) {
    int64_t numbers = 0;
    for (const auto& [key, tensor] : optimizer->state())
      if (key.starts_with(name + "/") && key != name + "/step") numbers += tensor.numel();
    return numbers;
  };
  EXPECT_EQ(stored("m"), 20 + 30);
  EXPECT_EQ(stored("experts.w1"), 4 * (20 + 30));
  EXPECT_EQ(stored("k"), 20 + 3 * 2 * 5);
}

TEST(FactoredAdam, FactorsEachExpertByItself) {
  const at::Tensor stack = at::zeros({3, 2, 3}, at::kDouble);
  const at::Tensor gradient = matrix(kGradient, at::kDouble);
  // Expert 1 had no tokens: its gradient is 0 and its weights are unchanged.
  const auto optimizer = make({{"experts.w1", stack, true}});
  const at::Tensor change =
      step(*optimizer, stack, at::stack({gradient, at::zeros_like(gradient), 100 * gradient}), 0.01);
  expect_near(change[0], kFirstStep, 5.1e-7);
  expect_near(change[1], Doubles(6, 0), 0);
  expect_near(change[2], kFirstStep, 5.1e-7);  // the step does not depend on the gradient's scale
}

// Vectors, rows of one matrix alone and the biases of experts, which are vectors in a stack.
TEST(FactoredAdam, IsAdamWhereNothingCanBeFactored) {
  for (const std::string name : {"norm.weight", "cls_token", "blocks.1.mlp.experts.b1"}) {
    const std::vector<int64_t> sizes = name == "norm.weight" ? std::vector<int64_t>{6}
                                       : name == "cls_token" ? std::vector<int64_t>{1, 1, 6}
                                                             : std::vector<int64_t>{2, 3};
    const at::Tensor value = at::ones(sizes), expected = at::ones(sizes);
    const auto optimizer = make({{name, value, true}}, {{"weight_decay", 0.1}});
    const auto adam = optimizers().make("adamw", {{"weight_decay", 0.1}}, "optimizer", {{name, expected, true}});
    for (const double scale : {1.0, -0.3, 2.0}) {
      const at::Tensor gradient = matrix(kGradient, at::kFloat).view(sizes) * scale;
      step(*optimizer, value, gradient, 0.01);
      step(*adam, expected, gradient, 0.01);
    }
    EXPECT_TRUE(at::allclose(value, expected, 1e-6, 1e-7)) << name;
  }
}

TEST(FactoredAdam, ContinuesFromASavedStateWithTheSameBits) {
  const auto run = [](const at::Tensor& w, const at::Tensor& b, Optimizer& optimizer, float scale) {
    w.mutable_grad() = matrix(kGradient, at::kFloat) * scale;
    b.mutable_grad() = at::ones({2}) * scale;
    optimizer.step(0.01);
  };
  const at::Tensor w = at::ones({2, 3}), b = at::ones({2});
  const auto unbroken = make({{"w", w, true}, {"b", b, true}});
  run(w, b, *unbroken, 1);
  const at::Tensor other_w = w.clone(), other_b = b.clone();
  const auto resumed = make({{"w", other_w, true}, {"b", other_b, true}});
  resumed->load_state(unbroken->state());
  run(w, b, *unbroken, 3);
  run(other_w, other_b, *resumed, 3);
  EXPECT_TRUE(w.equal(other_w) && b.equal(other_b));
}

}  // namespace sparsight::factored_adam_test
