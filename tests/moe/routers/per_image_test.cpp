#include "sparsight/moe/routers/per_image.h"

#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "sparsight/moe/losses/importance.h"
#include "sparsight/moe/losses/load.h"
#include "sparsight/moe/losses/targets.h"
#include "sparsight/moe/routers/softmax_topk.h"
#include "tests/moe/shazeer_example.h"
#include "tests/support/gradcheck.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::per_image_test {
namespace {

using test::near;
using test::table;

constexpr int64_t kImages = 3, kPerImage = 4, kWidth = 5, kExperts = 4;

RouterInput make_input(const at::Tensor& tokens, int64_t prefix = 1) {
  return {tokens, {tokens.size(0) / kPerImage, kPerImage, prefix, 0, 0}, "moe", ForwardMode::training(), {7, 3}};
}

std::shared_ptr<PerImageRouter> build_router(const PerImageOptions& options, at::ScalarType type = torch::kDouble) {
  auto router = std::make_shared<PerImageRouter>(options, RouterShape{kWidth, kExperts});
  initialize(*router, 1);
  router->to(type);
  const torch::NoGradGuard no_grad;
  router->weight.mul_(20);
  return router;
}

at::Tensor tokens() { return test::random_tensor({kImages * kPerImage, kWidth}, 3); }

RouterInput evaluated(RouterInput input) {
  input.mode = ForwardMode::evaluation();
  return input;
}

}  // namespace

class PerImage : public ::testing::TestWithParam<at::ScalarType> {};

// Logits (1, 2, 0): p = (0.244728, 0.665241, 0.090031).
TEST_P(PerImage, M17_ReproducesTheWorkedExampleOfTheGuidedLoss) {
  const double tol = test::example_tolerance(GetParam());
  at::Tensor logits = torch::tensor({{1., 2., 0.}}, GetParam()).requires_grad_(true);
  Routing r = spread_over_tokens(route_softmax_topk(logits, {}, 0, 1, false), 5);
  EXPECT_EQ(r.tokens, 5);
  EXPECT_TRUE(torch::equal(r.expert, torch::ones({5}, torch::kLong)));
  EXPECT_TRUE(near(r.gate, torch::full({5}, 0.665241), tol));
  EXPECT_EQ(r.gate.scalar_type(), GetParam());
  r.target = torch::tensor({{1., 0., 0.}});  // the expert that was not chosen: the loss is finite all the same
  const at::Tensor loss = superclass_loss(r);
  EXPECT_TRUE(near(loss, 1.407606, tol));
  loss.backward();
  EXPECT_TRUE(near(logits.grad(), table({{-0.755272, 0.665241, 0.090031}}), tol));
}

TEST_P(PerImage, M10_AllTokensOfAnImageGoToTheSameExpertsWithTheSameGates) {
  for (int64_t k = 1; k <= kExperts; ++k) {
    PerImageOptions options;
    options.k = k;
    const Routing r = build_router(options, GetParam())->route(make_input(tokens().to(GetParam())));
    EXPECT_EQ(r.per_token, k);
    const at::Tensor expert = r.expert.view({kImages, kPerImage, k}), gate = r.gate.view({kImages, kPerImage, k});
    EXPECT_TRUE(torch::equal(expert, expert.select(1, 0).unsqueeze(1).expand_as(expert)));
    EXPECT_TRUE(torch::equal(gate, gate.select(1, 0).unsqueeze(1).expand_as(gate)));
    if (k == kExperts) {
      EXPECT_TRUE(near(gate.sum(2), torch::ones({kImages, kPerImage}), 1e-6));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, PerImage, ::testing::Values(torch::kFloat, torch::kDouble));

TEST(PerImageRouter, M13_SeesTheClassTokenOrAMean) {
  const at::Tensor x = tokens(), by_image = x.view({kImages, kPerImage, kWidth});
  const TokenLayout with{kImages, kPerImage, 1, 0, 0}, without{kImages, kPerImage, 0, 0, 0};
  EXPECT_TRUE(torch::equal(image_vectors(x, with, {}, "auto"), by_image.select(1, 0)));
  EXPECT_TRUE(torch::equal(image_vectors(x, with, {}, "class_token"), by_image.select(1, 0)));
  EXPECT_TRUE(torch::equal(image_vectors(x, without, {}, "auto"), by_image.mean(1)));
  EXPECT_TRUE(torch::equal(image_vectors(x, with, {}, "mean_all"), by_image.mean(1)));
  EXPECT_TRUE(torch::equal(image_vectors(x, with, {}, "mean_patches"), by_image.slice(1, 1).mean(1)));
  EXPECT_THROW(image_vectors(x, without, {}, "class_token"), UsageError);
  const at::Tensor valid = torch::arange(kImages * kPerImage, torch::kLong).remainder(kPerImage) < 3;
  EXPECT_TRUE(near(image_vectors(x, with, valid, "mean_all"), by_image.slice(1, 0, 3).mean(1), 1e-12));
}

TEST(PerImageRouter, M13_NormalisesWhatItSees) {
  PerImageOptions options;
  const at::Tensor x = tokens(), seen = x.view({kImages, kPerImage, kWidth}).select(1, 0);
  const at::Tensor centred = seen - seen.mean(1, true);
  const at::Tensor normal = centred / (centred.square().mean(1, true) + 1e-6).sqrt();
  const auto logits = [&](const std::string& norm) {
    options.norm = norm;
    auto router = build_router(options);
    return std::pair(router, router->route(make_input(x)).clean_logits.view({kImages, kPerImage, -1}).select(1, 0));
  };
  const auto [plain, from_plain] = logits("none");
  EXPECT_TRUE(near(from_plain, seen.matmul(plain->weight.t()), 1e-12));
  const auto [layer, from_layer] = logits("layer_norm");
  EXPECT_TRUE(near(from_layer, normal.matmul(layer->weight.t()), 1e-12));
  EXPECT_EQ(layer->parameters().size(), 1u);
  const auto [affine, from_affine] = logits("affine");
  EXPECT_TRUE(near(from_affine, normal.matmul(affine->weight.t()), 1e-12));
  EXPECT_EQ(affine->parameters().size(), 3u);
}

TEST(PerImageRouter, M15_GatesHaveTheRightGradients) {
  PerImageOptions options;
  options.k = 2;
  options.norm = "affine";
  auto router = build_router(options);
  const at::Tensor x = tokens(), upstream = test::random_tensor({kImages * kPerImage * 2}, 4);
  const auto loss = [&] { return (router->route(make_input(x)).gate * upstream).sum(); };
  std::vector<at::Tensor> inputs = router->parameters();
  inputs.push_back(x);
  EXPECT_LT(test::gradient_error(loss, inputs, 1e-6), 1e-6);
}

TEST(PerImageRouter, M20_GradientsCanBeCutOff) {
  for (const bool task : {true, false})
    for (const bool backbone : {true, false}) {
      PerImageOptions options;
      options.task_gradient = task;
      options.backbone_gradient = backbone;
      auto router = build_router(options);
      const at::Tensor x = tokens().requires_grad_(true);
      RouterInput input = make_input(x);
      input.context.target = torch::eye(kExperts).slice(0, 0, kImages);
      const Routing r = router->route(input);
      EXPECT_EQ(r.gate.requires_grad(), task);
      superclass_loss(r).backward();
      EXPECT_GT(router->weight.grad().abs().max().item<double>(), 0);
      EXPECT_EQ(x.grad().defined() && x.grad().abs().max().item<double>() > 0, backbone);
    }
}

TEST(PerImageRouter, M21_TeacherForcingSelectsTheTrueSuperClass) {
  PerImageOptions options;
  options.teacher_forced = true;
  options.k = 2;
  auto router = build_router(options);
  RouterInput input = make_input(tokens());
  input.context.target = torch::tensor({{0.1, 0.1, 0.7, 0.1}, {1., 0., 0., 0.}, {0., 0., 0., 1.}});
  const Routing r = router->route(input);
  EXPECT_EQ(r.per_token, 1);
  const at::Tensor expert = torch::tensor({2, 0, 3}, torch::kLong).repeat_interleave(kPerImage);
  EXPECT_TRUE(torch::equal(r.expert, expert));
  EXPECT_TRUE(torch::equal(r.gate, r.scores.gather(1, expert.unsqueeze(1)).squeeze(1)));
  EXPECT_EQ(router->route(evaluated(input)).per_token, 2);
  options.renormalize = true;  // a single gate over its sum
  EXPECT_TRUE(torch::equal(build_router(options)->route(input).gate, torch::ones({kImages * kPerImage})));
}

// The balance losses of the end-to-end variant count images: repeating each for its tokens changes nothing.
TEST(PerImageRouter, BalanceLossesAreThoseOverImages) {
  const at::Tensor clean = test::random_tensor({6, 4}, 1), epsilon = test::random_tensor({6, 4}, 2);
  const Routing images = route_softmax_topk(clean, epsilon, 0.25, 1, false), spread = spread_over_tokens(images, 7);
  EXPECT_TRUE(near(vmoe_importance_loss(spread), vmoe_importance_loss(images).item<double>(), 1e-12));
  EXPECT_TRUE(near(vmoe_load_loss(spread), vmoe_load_loss(images).item<double>(), 1e-12));
}

TEST(PerImageRouter, NoiseIsKeyedByTheNumberOfTheImage) {
  PerImageOptions options;
  options.noise = 1;
  auto router = build_router(options);
  const Routing whole = router->route(make_input(tokens()));
  EXPECT_TRUE(near(whole.noise_scale, 0.25, 1e-12));
  RouterInput rest = make_input(tokens().slice(0, kPerImage));
  rest.context.image = torch::tensor({1, 2}, torch::kLong);
  EXPECT_TRUE(near(router->route(rest).noisy_logits, whole.noisy_logits.slice(0, kPerImage), 1e-12));
  EXPECT_FALSE(router->route(evaluated(make_input(tokens()))).noise_scale.defined());
}

}  // namespace sparsight::per_image_test
