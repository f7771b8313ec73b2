// Dropout inside the dense MLP of a transformer block, after its activation.
#include <gtest/gtest.h>

#include "sparsight/models/vit.h"
#include "sparsight/nn/dropout.h"
#include "sparsight/nn/mlp.h"
#include "tests/support/gradcheck.h"
#include "tests/support/random_tensor.h"

namespace sparsight::mlp_dropout_test {
namespace {

constexpr int64_t kImages = 3, kTokens = 5, kWidth = 8, kHidden = 32;

struct Parts {
  Mlp mlp{MlpOptions{kWidth, kHidden}};
  LayerNorm norm{kWidth};
  Parts() {
    initialize(*mlp, 1);
    initialize(*norm, 2);
  }
};

DropoutMask mask(double rate, uint64_t step, const at::Tensor& image = {}) {
  const int64_t images = image.defined() ? image.size(0) : kImages;
  return token_dropout({images, kTokens, kTokens, kHidden, image}, rate, RandomStream(4, "hidden", step));
}

at::Tensor input(at::ScalarType type = at::kFloat) { return test::random_tensor({kImages, kTokens, kWidth}, 3, type); }

// x + (mask * gelu(norm(x) W1 + b1)) W2 + b2 in torch's operations, and dropout of the branch.
TEST(MlpDropout, M32_FollowsTheActivation) {
  Parts parts;
  const at::Tensor x = input(),
                   hidden_factors = dropout_factors(mask(0.25, 0), kHidden, x).view({kImages, kTokens, -1});
  const BranchDrop drop{token_dropout({kImages, kTokens, kTokens, kWidth}, 0.5, RandomStream(5, "out", 0))};
  const at::Tensor hidden = at::gelu(parts.mlp->fc1()->forward(parts.norm->forward(x))) * hidden_factors;
  const at::Tensor branch = parts.mlp->fc2()->forward(hidden) * dropout_factors(drop.dropout, kWidth, x).view_as(x);
  const at::Tensor y = parts.mlp->forward_residual(x, parts.norm, drop, mask(0.25, 0));
  EXPECT_TRUE(torch::allclose(y, x + branch, 1e-5, 1e-5));
  EXPECT_NEAR(hidden_factors.eq(0).to(at::kFloat).mean().item<double>(), 0.25, 0.08);  // of 480: 4 sigma
  EXPECT_NEAR(hidden_factors.max().item<double>(), 1 / 0.75, 1e-6);
}

TEST(MlpDropout, WithoutAMaskNothingChanges) {
  Parts parts;
  EXPECT_TRUE(torch::equal(parts.mlp->forward_residual(input(), parts.norm, {}, {}),
                           parts.mlp->forward_residual(input(), parts.norm)));
}

TEST(MlpDropout, GradientAgreesWithCentralDifferences) {
  Parts parts;
  parts.mlp->to(at::kDouble);
  parts.norm->to(at::kDouble);
  std::vector<at::Tensor> leaves{input(at::kDouble)};
  for (const at::Tensor& parameter : parts.mlp->parameters()) leaves.push_back(parameter);
  const at::Tensor weight = test::random_tensor({kImages, kTokens, kWidth}, 6, at::kDouble);
  EXPECT_LT(test::gradient_error(
                [&] { return (parts.mlp->forward_residual(leaves[0], parts.norm, {}, mask(0.25, 0)) * weight).sum(); },
                leaves),
            1e-7);
}

// The kernels' gradients in fp32 against those of torch's operations in float64.
TEST(MlpDropout, KernelsHaveTheSameGradients) {
  const auto gradients = [](at::ScalarType type) {
    Parts parts;
    parts.mlp->to(type);
    parts.norm->to(type);
    const at::Tensor x = input().to(type).requires_grad_(true);
    parts.mlp->forward_residual(x, parts.norm, {}, mask(0.25, 0)).square().sum().backward();
    std::vector<at::Tensor> all{x.grad()};
    for (const at::Tensor& parameter : parts.mlp->parameters()) all.push_back(parameter.grad());
    return all;
  };
  const std::vector<at::Tensor> fast = gradients(at::kFloat), exact = gradients(at::kDouble);
  for (size_t i = 0; i < exact.size(); ++i)
    EXPECT_LT((fast[i].to(at::kDouble) - exact[i]).abs().max().item<double>(),
              1e-5 * std::max(1.0, exact[i].abs().max().item<double>()))
        << i;
}

std::shared_ptr<Vit> vit_with(double hidden_dropout, const std::vector<int64_t>& moe_blocks = {}) {
  VitOptions options;
  options.width = 8, options.depth = 2, options.heads = 2;
  options.hidden_dropout = hidden_dropout;
  auto vit = std::make_shared<Vit>(options, ModelContext{{1, 8, 8, 3}, default_moe_spec(moe_blocks)});
  initialize(*vit, 1);
  return vit;
}

at::Tensor logits(Vit& vit, const at::Tensor& images, const at::Tensor& numbers, uint64_t step,
                  const ForwardMode& mode = ForwardMode::training()) {
  ModelInput input{images, mode, {1, step}};
  input.info.image = numbers;
  return vit.forward(input).logits;
}

TEST(MlpDropout, M32_OfAVisionTransformerIsPartOfTrainingOnly) {
  const auto none = vit_with(0), some = vit_with(0.3);
  const at::Tensor images = test::random_tensor({4, 1, 8, 8}, 2, at::kFloat), numbers = torch::arange(4);
  EXPECT_TRUE(torch::equal(logits(*some, images, numbers, 0), logits(*some, images, numbers, 0)));
  EXPECT_FALSE(torch::equal(logits(*some, images, numbers, 0), logits(*some, images, numbers, 1)));
  EXPECT_FALSE(torch::equal(logits(*some, images, numbers, 0), logits(*none, images, numbers, 0)));
  EXPECT_TRUE(torch::equal(logits(*some, images, numbers, 0, {}), logits(*none, images, numbers, 0, {})));
}

TEST(MlpDropout, AnImageKeepsItsMaskWhenOthersLeaveTheBatch) {
  const auto vit = vit_with(0.3);
  const at::Tensor images = test::random_tensor({4, 1, 8, 8}, 2, at::kFloat), numbers = torch::arange(4);
  const at::Tensor all = logits(*vit, images, numbers, 0), chosen = torch::tensor({1, 3});
  const at::Tensor some = logits(*vit, images.index_select(0, chosen), chosen, 0);
  EXPECT_TRUE(torch::allclose(some, all.index_select(0, chosen), 1e-5, 1e-6));
}

}  // namespace
}  // namespace sparsight::mlp_dropout_test
