#include "sparsight/optim/optimizer.h"

#include <cmath>

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace sparsight::optimizer_test {
namespace {

struct OneParameter {
  at::Tensor value = at::full({1}, 1.0, at::kFloat);
  std::shared_ptr<Optimizer> optimizer;

  OneParameter(const std::string& name, const Json& settings, bool decay = true)
      : optimizer(optimizers().make(name, settings, "optimizer", {{"p", value, decay}})) {}

  float step(double lr, float gradient) {
    value.mutable_grad() = at::full({1}, gradient, at::kFloat);
    optimizer->step(lr);
    return *value.data_ptr<float>();
  }
};

TEST(Sgd, FollowsNesterovMomentumByHand) {
  OneParameter p("sgd", {{"momentum", 0.9}, {"weight_decay", 0.0}});
  // v1 = 2, p1 = 1 - 0.1 * (2 + 0.9 * 2) = 0.62
  EXPECT_NEAR(p.step(0.1, 2), 0.62, 1e-6);
  // v2 = 0.9 * 2 + 1 = 2.8, p2 = 0.62 - 0.1 * (1 + 0.9 * 2.8) = 0.268
  EXPECT_NEAR(p.step(0.1, 1), 0.268, 1e-6);
}

TEST(Sgd, AddsWeightDecayToTheGradientOnlyWhereItApplies) {
  const Json settings{{"momentum", 0.0}, {"weight_decay", 0.5}};
  EXPECT_NEAR(OneParameter("sgd", settings).step(0.1, 2), 1 - 0.1 * (2 + 0.5 * 1), 1e-6);
  EXPECT_NEAR(OneParameter("sgd", settings, /*decay=*/false).step(0.1, 2), 1 - 0.1 * 2, 1e-6);
}

TEST(Adam, FirstStepMovesByTheLearningRate) {
  // Bias-corrected m / sqrt(v) = g / |g|, so p = 1 - lr.
  EXPECT_NEAR(OneParameter("adam", {}).step(0.01, 3), 0.99, 1e-6);
}

TEST(Adam, SecondStepByHand) {
  OneParameter p("adam", {});
  p.step(0.01, 3);
  // m = 0.1*0.9*3 + 0.1*1 = 0.37, m^ = 0.37 / (1 - 0.81) = 1.947368
  // v = 0.001*0.999*9 + 0.001*1 = 0.009991, v^ = 0.009991 / (1 - 0.998001) = 4.997999
  EXPECT_NEAR(p.step(0.01, 1), 0.99 - 0.01 * 1.947368 / std::sqrt(4.997999), 1e-6);
}

TEST(AdamW, ShrinksTheParameterBeforeTheUpdate) {
  // p = 1 * (1 - 0.01 * 0.5) - 0.01 = 0.985
  EXPECT_NEAR(OneParameter("adamw", {{"weight_decay", 0.5}}).step(0.01, 3), 0.985, 1e-6);
}

TEST(Optimizer, SkipsParametersWithoutAGradient) {
  const at::Tensor a = at::full({2}, 1.0, at::kFloat), b = at::full({2}, 1.0, at::kFloat);
  auto optimizer = optimizers().make("adamw", {}, "optimizer", {{"a", a, true}, {"b", b, true}});
  a.mutable_grad() = at::full({2}, 1.0, at::kFloat);
  optimizer->step(0.1);
  EXPECT_NE(a[0].item<float>(), 1.0f);
  EXPECT_EQ(b[0].item<float>(), 1.0f);
}

// The clipped gradient, and then the average: the same as scaling the gradient before the step and averaging after it.
TEST(Optimizer, StepsWithAClippedGradientAndAnAverage) {
  for (const std::string& name : optimizers().names()) {
    const at::Tensor a = at::full({1}, 1.0, at::kFloat), b = a.clone(), idle = a.clone();
    const at::Tensor average = at::zeros({1}), idle_average = at::zeros({1});
    auto fused = optimizers().make(
        name, {}, "optimizer",
        {{.name = "a", .value = a, .average = average}, {.name = "i", .value = idle, .average = idle_average}});
    auto plain = optimizers().make(name, {}, "optimizer", {{.name = "b", .value = b}});
    a.mutable_grad() = at::full({1}, 4.0, at::kFloat);
    b.mutable_grad() = at::full({1}, 1.0, at::kFloat);
    fused->step({.lr = 0.1, .gradient_factor = 0.25, .average_share = 0.5});
    plain->step(0.1);
    EXPECT_EQ(a.item<float>(), b.item<float>()) << name;
    EXPECT_LT(a.item<float>(), 1) << name;
    EXPECT_FLOAT_EQ(average.item<float>(), 0.5f * b.item<float>()) << name;
    EXPECT_EQ(idle.item<float>(), 1) << name;
    EXPECT_EQ(idle_average.item<float>(), 0.5f) << name;
  }
}

TEST(Optimizer, ContinuesFromASavedStateWithTheSameBits) {
  for (const std::string& name : optimizers().names()) {
    OneParameter unbroken(name, {}), first(name, {});
    for (int i = 0; i < 3; ++i) unbroken.step(0.1, 0.3f * i - 1), first.step(0.1, 0.3f * i - 1);
    OneParameter resumed(name, {});
    resumed.value.copy_(first.value);
    resumed.optimizer->load_state(first.optimizer->state());
    EXPECT_EQ(unbroken.step(0.1, 0.7f), resumed.step(0.1, 0.7f)) << name;
  }
}

// Such as the log scale of a cosine router, with a gradient below 0.
TEST(Optimizer, AMomentOfASingleNumberMayBeNegative) {
  const at::Tensor number = at::zeros({}).requires_grad_(true);
  const auto adam = optimizers().make("adam", Json::object(), "optimizer", {{.name = "log_scale", .value = number}});
  number.mutable_grad() = at::full({}, -1.f);
  adam->step(0.1);
  EXPECT_NO_THROW(adam->load_state(adam->state()));
  NamedTensors damaged;
  for (const auto& [name, tensor] : adam->state())
    damaged.emplace_back(name, name.ends_with("/step") ? at::full({}, -1.f) : tensor);
  EXPECT_THROW(adam->load_state(damaged), Error);
}

TEST(Optimizer, RefusesAStateOfAnotherOptimizer) {
  OneParameter sgd("sgd", {}), adam("adam", {});
  EXPECT_THROW(adam.optimizer->load_state(sgd.optimizer->state()), Error);
}

}  // namespace
}  // namespace sparsight::optimizer_test
