#include "sparsight/moe/routers/soft_moe.h"

#include <cmath>

#include <gtest/gtest.h>

#include "sparsight/moe/dispatch/soft.h"
#include "tests/moe/shazeer_example.h"
#include "tests/support/gradcheck.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::soft_moe_test {
namespace {

using test::near;
using test::table;

constexpr int64_t kImages = 2, kPerImage = 3, kWidth = 4, kExperts = 3, kSlots = 2;

RouterInput make_input(const at::Tensor& tokens) {
  return {tokens, {kImages, kPerImage, 0, 0, 0}, "blocks.1.mlp", ForwardMode::training(), {7, 3}};
}

at::Tensor tokens(at::ScalarType type = torch::kDouble) {
  return test::random_tensor({kImages * kPerImage, kWidth}, 3, type);
}

std::shared_ptr<SoftMoeRouter> build_router(at::ScalarType type, bool normalize = true) {
  SoftMoeOptions options;
  options.slots = kSlots;
  options.normalize = normalize;
  auto router = std::make_shared<SoftMoeRouter>(options, RouterShape{kWidth, kExperts});
  initialize(*router, 1);
  router->to(type);
  const torch::NoGradGuard no_grad;
  if (normalize) router->scale.fill_(3);
  return router;
}

// Toy experts E_e(x) = (e+1) x.
class Scaling : public Experts {
 public:
  at::Tensor compute(const at::Tensor& rows, const at::Tensor& offsets, const RowContext&) override {
    const at::Tensor expert = torch::repeat_interleave(torch::arange(offsets.size(0) - 1), offsets.diff());
    return rows * (expert + 1).to(rows.scalar_type()).unsqueeze(1);
  }
};

}  // namespace

class SoftMoe : public ::testing::TestWithParam<at::ScalarType> {};

// One image, two tokens, two experts with a slot each; exp(logits) = (1 3; 3 1). Columns and rows both sum to 4.
TEST_P(SoftMoe, ByHand) {
  const double tol = GetParam() == torch::kDouble ? 1e-12 : 1e-6;
  SoftRouting r = soft_routing(table({{1, 3}, {3, 1}}).log().to(GetParam()).unsqueeze(0), {}, 2);
  const at::Tensor quarters = table({{0.25, 0.75}, {0.75, 0.25}}).unsqueeze(0);
  EXPECT_TRUE(near(r.dispatch, quarters, tol));
  EXPECT_TRUE(near(r.combine, quarters, tol));
  EXPECT_EQ(r.slots, 1);
  r.layout = {1, 2, 0, 0, 0};
  // Tokens 4 and 8: slots take 1 + 6 = 7 and 3 + 2 = 5; experts make 7 and 10 of them; tokens get 7/4 + 30/4 = 9.25 and
  // 21/4 + 10/4 = 7.75.
  Scaling experts;
  const at::Tensor y = run_soft_experts(torch::tensor({{4.}, {8.}}, GetParam()), r, experts);
  EXPECT_TRUE(near(y, table({{9.25}, {7.75}}), 10 * tol));
  EXPECT_EQ(y.scalar_type(), GetParam());
}

TEST_P(SoftMoe, EqualsTheDefinitionSlotBySlot) {
  const double tol = GetParam() == torch::kDouble ? 1e-10 : 1e-5;
  for (const bool normalize : {true, false}) {
    auto router = build_router(GetParam(), normalize);
    const at::Tensor x = tokens(GetParam());
    const SoftRouting r = router->mix(make_input(x));
    EXPECT_EQ(r.layer, "blocks.1.mlp");
    Scaling experts;
    const at::Tensor y = run_soft_experts(x, r, experts);
    for (int64_t image = 0; image < kImages; ++image) {
      const at::Tensor xi = x.slice(0, image * kPerImage, (image + 1) * kPerImage);
      at::Tensor logits = xi.matmul(router->weight.t());
      if (normalize) logits = 3 * logits / xi.norm(2, {1}, true) / router->weight.norm(2, {1}).unsqueeze(0);
      EXPECT_TRUE(near(r.logits[image], logits, tol));
      at::Tensor expected = torch::zeros_like(xi);
      for (int64_t slot = 0; slot < kExperts * kSlots; ++slot) {
        const at::Tensor mixed = logits.select(1, slot).softmax(0).matmul(xi);
        const double expert = static_cast<double>(slot / kSlots + 1);
        expected = expected + logits.softmax(1).select(1, slot).unsqueeze(1) * (expert * mixed).unsqueeze(0);
      }
      EXPECT_TRUE(near(y.slice(0, image * kPerImage, (image + 1) * kPerImage), expected, 10 * tol));
    }
  }
}

TEST_P(SoftMoe, DispatchSumsToOneOverTokensAndCombineOverSlots) {
  auto router = build_router(GetParam());
  RouterInput input = make_input(tokens(GetParam()));
  input.context.valid = torch::tensor({true, true, false, true, false, false});
  const SoftRouting r = router->mix(input);
  EXPECT_TRUE(near(r.dispatch.sum(1), torch::ones({kImages, kExperts * kSlots}), 1e-6));
  EXPECT_TRUE(near(r.combine.sum(2), table({{1, 1, 0}, {1, 0, 0}}), 1e-6));
  EXPECT_TRUE(
      (r.dispatch.view({-1, kExperts * kSlots}).index({input.context.valid.logical_not()}) == 0).all().item<bool>());
}

INSTANTIATE_TEST_SUITE_P(Types, SoftMoe, ::testing::Values(torch::kFloat, torch::kDouble));

TEST(SoftMoeRouter, TheLayerHasTheRightGradients) {
  auto router = build_router(torch::kDouble);
  Scaling experts;
  const at::Tensor x = tokens(), upstream = test::random_tensor({kImages * kPerImage, kWidth}, 4);
  const auto loss = [&] { return (run_soft_experts(x, router->mix(make_input(x)), experts) * upstream).sum(); };
  std::vector<at::Tensor> inputs = router->parameters();
  inputs.push_back(x);
  EXPECT_LT(test::gradient_error(loss, inputs), 1e-7);
}

TEST(SoftMoeRouter, OneImageKnowsNothingOfTheOthers) {
  auto router = build_router(torch::kDouble);
  Scaling experts;
  at::Tensor x = tokens();
  const at::Tensor before = run_soft_experts(x, router->mix(make_input(x)), experts);
  x.slice(0, kPerImage).mul_(-2);
  const at::Tensor after = run_soft_experts(x, router->mix(make_input(x)), experts);
  EXPECT_TRUE(near(after.slice(0, 0, kPerImage), before.slice(0, 0, kPerImage), 1e-14));
}

TEST(SoftMoeRouter, PaddingIsZeroBesideTokensThatAreNotFinite) {
  auto router = build_router(torch::kDouble);
  Scaling experts;
  for (const double poison : {NAN, INFINITY}) {
    at::Tensor x = tokens();
    x[1][2] = poison;  // of the first image
    x.requires_grad_(true);
    RouterInput input = make_input(x);
    input.context.valid = torch::tensor({true, true, false, true, true, false});
    const at::Tensor y = run_soft_experts(x, router->mix(input), experts);
    y.sum().backward();
    const at::Tensor padding = torch::nonzero(input.context.valid.logical_not()).squeeze(1);
    for (const at::Tensor& rows : {y, x.grad()})
      EXPECT_TRUE(torch::equal(rows.index_select(0, padding), torch::zeros({2, kWidth}, torch::kDouble))) << poison;
    EXPECT_FALSE(torch::isfinite(y[0]).any().item<bool>());
    EXPECT_TRUE(torch::isfinite(y.slice(0, kPerImage)).all().item<bool>());
  }
}

TEST(SoftMoeRouter, ATokenOfZerosHasFiniteGradients) {
  auto router = build_router(torch::kFloat);
  const at::Tensor x = torch::zeros({kImages * kPerImage, kWidth}).requires_grad_(true);
  router->mix(make_input(x)).dispatch.square().sum().backward();
  EXPECT_TRUE(torch::isfinite(x.grad()).all().item<bool>());
}

}  // namespace sparsight::soft_moe_test
