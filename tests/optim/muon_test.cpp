#include "sparsight/optim/muon.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/diag.h>
#include <ATen/ops/linalg_svdvals.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "tests/optim/one_step.h"

namespace sparsight::muon_test {
namespace {

using testing::expect_near, testing::step;
using Doubles = std::vector<double>;

std::shared_ptr<Optimizer> make(std::vector<OptimizedParameter> parameters, const Json& settings = {}) {
  return optimizers().make("muon", settings, "optimizer", std::move(parameters));
}

const Doubles kGradient{.1, -.2, .3, .4, 0, -.1};

}  // namespace

// The singular values of diag(3,4) are multiplied as numbers: p(x) = 3.4445 x - 4.775 x^3 + 2.0315 x^5 from 0.6 and
// 0.8. p(0.6) = 2.0667 - 1.0314 + 0.15797 = 1.19327; p(0.8) = 2.7556 - 2.4448 + 0.66568 = 0.97648.
TEST(Orthogonalize, MultipliesSingularValues) {
  const at::Tensor matrix = at::diag(at::tensor(Doubles{3, 4}, at::kDouble));
  expect_near(orthogonalize(matrix, 1), {1.19327, 0, 0, 0.97648}, 1e-5);
  const auto p = [](double x) { return 3.4445 * x - 4.775 * x * x * x + 2.0315 * x * x * x * x * x; };
  expect_near(orthogonalize(matrix, 3), {p(p(p(0.6))), 0, 0, p(p(p(0.8)))}, 1e-12);
}

TEST(Orthogonalize, BringsAllSingularValuesNearOne) {
  for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{{20, 7}, {7, 20}, {3, 9, 9}}) {
    const at::Tensor values = at::linalg_svdvals(orthogonalize(at::randn(sizes), 8));
    EXPECT_GT(values.min().item<double>(), 0.6);
    EXPECT_LT(values.max().item<double>(), 1.25);
  }
  EXPECT_EQ(orthogonalize(at::zeros({2, 3}), 5).abs().max().item<double>(), 0);
}

// Two steps, with G and G / 2, momentum 0.95, decay 0.1, lr 0.02. Expected: NumPy in fp64, written from the definition.
TEST(Muon, EqualsNumPy) {
  const struct {
    std::vector<int64_t> shape;
    std::string scale;
    Doubles first, second;
  } cases[] = {
      {{2, 3},
       "shape",
       {-0.00484799, 0.011843173, -0.018033158, -0.020197157, -0.000536798, 0.005921586},
       {-0.004838294, 0.011819486, -0.017997092, -0.020156762, -0.000535725, 0.005909743}},
      {{3, 2},
       "shape",
       {-0.018455695, 0.015817741, -0.014802376, -0.011353127, -0.004056471, 0.005880635},
       {-0.018418784, 0.015786106, -0.014772771, -0.011330421, -0.004048358, 0.005868874}},
      {{2, 3},
       "adamw",
       {-0.001679393, 0.004102595, -0.006246869, -0.0069965, -0.000185952, 0.002051298},
       {-0.001676034, 0.00409439, -0.006234376, -0.006982507, -0.00018558, 0.002047195}},
  };
  for (const auto& [shape, scale, first, second] : cases)
    for (const auto type : {at::kDouble, at::kFloat}) {
      const at::Tensor value = at::zeros(shape, type), gradient = at::tensor(kGradient, type).view(shape);
      const auto muon = make({{"w", value}}, {{"weight_decay", 0.1}, {"scale", scale}});
      const double tolerance = type == at::kDouble ? 1e-9 : 1e-7;
      expect_near(step(*muon, value, gradient.clone(), 0.02), first, tolerance);
      expect_near(step(*muon, value, gradient / 2, 0.02), second, tolerance);
    }
}

// What torch.optim.Muon of torch 2.13 gives, which makes matrices orthogonal in bf16.
TEST(Muon, IsNearTorch) {
  const at::Tensor value = at::zeros({2, 3}), gradient = at::tensor(kGradient, at::kFloat).view({2, 3});
  const auto muon = make({{"w", value}}, {{"weight_decay", 0.1}});
  expect_near(step(*muon, value, gradient.clone(), 0.02),
              {-0.00490234, 0.01203125, -0.01820312, -0.0203125, -0.00053711, 0.00589844}, 2e-4);
  expect_near(step(*muon, value, gradient / 2, 0.02),
              {-0.00489254, 0.01200719, -0.01816672, -0.02027187, -0.00053604, 0.00588664}, 2e-4);
}

// Each expert has a matrix of its own.
TEST(Muon, UpdatesEachExpertByItself) {
  const at::Tensor gradient = at::randn({3, 4, 5}, at::kDouble), all = at::zeros({3, 4, 5}, at::kDouble);
  const auto together = make({{"experts.w1", all}});
  const at::Tensor change = step(*together, all, gradient.clone(), 0.1);
  for (int64_t e = 0; e < 3; ++e) {
    const at::Tensor one = at::zeros({4, 5}, at::kDouble);
    EXPECT_TRUE(at::allclose(step(*make({{"w", one}}), one, gradient[e].clone(), 0.1), change[e], 0, 1e-12));
  }
}

// Whether a rank with some slices of a parameter could update them alone.
TEST(Muon, MixesTheRowsOfAMatrixButNoExperts) {
  const at::Tensor experts = at::zeros({3, 4, 5}), biases = at::zeros({3, 4}), bias = at::zeros({4});
  const auto muon =
      make({{"experts.w1", experts}, {"experts.b1", biases}, {"bias", bias}}, {{"others", Json::array()}});
  EXPECT_FALSE(muon->mixes_slices(0));
  EXPECT_TRUE(muon->mixes_slices(1));
  EXPECT_FALSE(muon->mixes_slices(2));
  EXPECT_FALSE(make({{"experts.b1", biases}})->mixes_slices(0));  // excepted by default
}

// Adam's first step is lr times the sign of the gradient, here 0.1 of 0.02.
TEST(Muon, UpdatesVectorsAndNamedMatricesAsAdamW) {
  for (const std::string name : {"norm.weight", "head.weight"}) {
    const at::Tensor value = at::zeros(name == "head.weight" ? std::vector<int64_t>{2, 3} : std::vector<int64_t>{6});
    const at::Tensor gradient = at::tensor(Doubles{.1, -.2, .3, .4, .5, -.1}, at::kFloat).view(value.sizes());
    expect_near(step(*make({{name, value}}), value, gradient, 0.02), {-.002, .002, -.002, -.002, -.002, .002}, 1e-8);
  }
}

}  // namespace sparsight::muon_test
