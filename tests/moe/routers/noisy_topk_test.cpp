#include "sparsight/moe/routers/noisy_topk.h"

#include <limits>

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "sparsight/core/error.h"
#include "sparsight/moe/losses/importance.h"
#include "sparsight/moe/losses/load.h"
#include "tests/moe/routers/token_batch.h"
#include "tests/moe/shazeer_example.h"
#include "tests/support/gradcheck.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"
#include "tests/support/typed_gradcheck.h"

namespace sparsight::noisy_topk_test {
namespace {

using test::near;
using test::NoisyExample;
using test::table;
using test::token_batch;

std::shared_ptr<NoisyTopKRouter> build_router(int64_t width, int64_t experts, int64_t k = 2, double floor = 0.01) {
  NoisyTopKOptions options;
  options.k = k;
  options.noise_floor = floor;
  return std::make_shared<NoisyTopKRouter>(options, RouterShape{width, experts});
}

// The worked example's, with a floor of 0.
std::shared_ptr<NoisyTopKRouter> example_router(at::ScalarType type) {
  auto router = build_router(3, 4, 2, 0);
  router->to(type);
  const torch::NoGradGuard no_grad;
  router->weight.copy_(test::example_weight().t());
  router->noise_weight.copy_(test::example_noise_weight().t());
  return router;
}

}  // namespace

class NoisyTopK : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  double tol() const { return test::example_tolerance(GetParam()); }
};

// The router on the example's tokens, with its samples. The floor is 0, so that the noise scale is softplus(r). The
// gradients of this routing are those of S3, S4 (losses/shazeer_losses_test.cpp) and S6 (worked_layer_test.cpp).
TEST_P(NoisyTopK, S1_ReproducesT1) {
  RouterInput input = token_batch(test::example_tokens().to(GetParam()));
  input.context.samples["noise"] = test::example_epsilon();
  const Routing r = example_router(GetParam())->route(input);
  EXPECT_TRUE(near(r.clean_logits,
                   table({{0.95, -0.625, -0.275, 0.3}, {-0.95, 0.45, 1.65, -0.65}, {-0.575, 0.925, 0.025, -0.075}}),
                   tol()));
  EXPECT_TRUE(near(r.noise_scale,
                   table({{0.731350, 0.575939, 0.928057, 0.575939},
                          {1.005492, 0.883382, 0.575939, 1.205865},
                          {0.543793, 0.989712, 0.483589, 0.705725}}),
                   tol()));
  EXPECT_TRUE(near(r.noise_scale.expm1().log(),
                   table({{0.075, -0.25, 0.425, -0.25}, {0.55, 0.35, -0.25, 0.85}, {-0.325, 0.525, -0.475, 0.025}}),
                   tol()));
  EXPECT_TRUE(near(r.noisy_logits,
                   table({{1.315675, -1.316127, 0.003417, 0.760752},
                          {-1.653845, 0.803353, 2.283533, -0.891173},
                          {0.240689, 0.331173, 0.121718, -0.710153}}),
                   tol()));
  EXPECT_TRUE(torch::equal(r.expert, torch::tensor({0, 3, 2, 1, 1, 0}, torch::kLong)));
  EXPECT_TRUE(near(test::dense_gates(r),
                   table({{0.635277, 0, 0, 0.364723}, {0, 0.185400, 0.814600, 0}, {0.477394, 0.522606, 0, 0}}), tol()));
  EXPECT_EQ(r.gate.scalar_type(), GetParam());
}

TEST_P(NoisyTopK, S2_RowsSumToOneWithExactlyKExperts) {
  const at::Tensor values = test::random_tensor({200, 6}, 1).to(GetParam()), scale = values.abs() + 0.1,
                   epsilon = test::random_tensor({200, 6}, 2).to(GetParam());
  for (int64_t k = 1; k <= 6; ++k) {
    const at::Tensor clean = values.clone().requires_grad_(true);
    const Routing r = route_noisy_topk(clean, scale, epsilon, k);
    EXPECT_TRUE(near(r.gate.view({200, k}).sum(1), torch::ones({200}), 1e-6));
    EXPECT_TRUE(torch::equal(torch::bincount(r.token, {}, 200), torch::full({200}, k, torch::kLong)));
    EXPECT_TRUE((r.gate > 0).all().item<bool>());
    if (k == 1) {
      EXPECT_TRUE((r.gate == 1).all().item<bool>());
    }
    // A sum that is always 1 has no gradient; a weighted one has it at the k chosen experts, or nowhere for k = 1.
    const at::Tensor none = torch::autograd::grad({r.gate.sum()}, {clean}, {}, /*retain_graph=*/true)[0];
    EXPECT_TRUE(near(none, torch::zeros({200, 6}), 1e-6)) << k;
    const at::Tensor upstream = test::random_tensor({200 * k}, 3).to(GetParam());
    const at::Tensor some = torch::autograd::grad({(r.gate * upstream).sum()}, {clean})[0];
    EXPECT_TRUE(torch::equal((some != 0).sum(1), torch::full({200}, k == 1 ? 0 : k, torch::kLong))) << k;
  }
}

TEST_P(NoisyTopK, S7_ReproducesT5ForOtherK) {
  const NoisyExample e(GetParam());
  const auto expect = [&](int64_t k, std::vector<double> imp, double cv_imp, std::vector<double> load, double cv_load) {
    const Routing r = e.route(k);
    EXPECT_TRUE(near(importance(r), torch::tensor(imp, torch::kDouble), tol())) << k;
    EXPECT_TRUE(near(importance_loss(r), cv_imp, tol())) << k;
    EXPECT_TRUE(near(smooth_load(r), torch::tensor(load, torch::kDouble), tol())) << k;
    EXPECT_TRUE(near(load_loss(r), cv_load, tol())) << k;
  };
  expect(1, {1, 1, 1, 0}, 0.333333, {0.650560, 0.774693, 1.235814, 0.328863}, 0.189646);
  expect(3, {0.877782, 0.546332, 1.231496, 0.344390}, 0.201852, {2.073841, 2.079740, 2.804804, 2.185140}, 0.017553);
  expect(4, {0.834075, 0.539086, 1.179948, 0.446891}, 0.145904, {3, 3, 3, 3}, 0);
  EXPECT_TRUE(near(test::dense_gates(e.route(4)),
                   table({{0.522118, 0.037566, 0.140560, 0.299756},
                          {0.015129, 0.176582, 0.775854, 0.032436},
                          {0.296828, 0.324939, 0.263534, 0.114699}}),
                   tol()));
  // k = E: the load does not depend on anything.
  const at::Tensor loss = load_loss(e.route(4));
  EXPECT_EQ(loss.item<double>(), 0);
  EXPECT_FALSE(loss.requires_grad());
}

// The specification prints no gradients for other k: central differences give them. The load of k = E has none.
TEST_P(NoisyTopK, S7_GradientsForOtherKAgreeWithCentralDifferences) {
  const at::Tensor raw = test::example_tokens().matmul(test::example_noise_weight());
  for (const int64_t k : {1, 3, 4}) {
    const auto loss = [&](const std::vector<at::Tensor>& leaf) {
      const Routing r =
          route_noisy_topk(leaf[0], noise_scale(leaf[1], 0), test::example_epsilon().to(leaf[0].scalar_type()), k);
      return importance_loss(r) + load_loss(r);
    };
    EXPECT_LT(test::gradient_error_in(GetParam(), loss, {test::example_logits(), raw}), tol()) << k;
  }
}

TEST_P(NoisyTopK, S8_EvaluationReproducesT6AndIsRepeatable) {
  auto router = example_router(GetParam());
  const at::Tensor x = test::example_tokens().to(GetParam());
  const Routing r = router->route(test::evaluated(token_batch(x))),
                again = router->route(test::evaluated(token_batch(x, 5)));
  EXPECT_FALSE(r.noise_scale.defined());
  EXPECT_TRUE(torch::equal(r.expert, torch::tensor({0, 3, 2, 1, 1, 2}, torch::kLong)));
  EXPECT_TRUE(near(test::dense_gates(r),
                   table({{0.657010, 0, 0, 0.342990}, {0, 0.231475, 0.768525, 0}, {0, 0.710950, 0.289050, 0}}), tol()));
  EXPECT_TRUE(near(importance(r), torch::tensor({0.657010, 0.942425, 1.057575, 0.342990}, torch::kDouble), tol()));
  EXPECT_TRUE(near(importance_loss(r), 0.135971, tol()));
  EXPECT_TRUE(near(smooth_load(r), torch::tensor({1., 2., 2., 1.}, torch::kDouble), 0));
  EXPECT_TRUE(near(cv_squared(smooth_load(r)), 0.111111, tol()));
  EXPECT_FALSE(load_loss(r).defined());
  EXPECT_TRUE(torch::equal(r.gate, again.gate) && torch::equal(r.expert, again.expert));
  // dCV²/dImp = 2 / (4 * .75²) * (Imp - .75 - .135971 * .75) = d = -.173305 .080397 .182753 -.452434, and
  // dh = w (d - sum of w d over the chosen): .657010 (d_0 + .269043), and so on; dWg = Xᵀ dh.
  importance_loss(r).backward();
  const at::Tensor dh = table({{0.062901, 0, 0, -0.062901}, {0, -0.018209, 0.018209, 0}, {0, -0.021034, 0.021034, 0}});
  EXPECT_TRUE(near(router->weight.grad().t(), test::example_tokens().t().matmul(dh), 2 * tol()));
  EXPECT_FALSE(router->noise_weight.grad().defined());
}

TEST_P(NoisyTopK, S9_ZeroInitialisationReproducesT7) {
  const at::Tensor zero = torch::zeros({3, 4}, GetParam());
  const Routing r = route_noisy_topk(zero, noise_scale(zero, 0), test::example_epsilon().to(GetParam()), 2);
  EXPECT_TRUE(near(r.noise_scale, torch::full({3, 4}, 0.693147), tol()));
  EXPECT_TRUE(torch::equal(r.expert, torch::tensor({3, 0, 2, 1, 0, 2}, torch::kLong)));
  EXPECT_TRUE(near(test::dense_gates(r),
                   table({{0.448200, 0, 0, 0.551800}, {0, 0.381024, 0.618976, 0}, {0.711174, 0, 0.288826, 0}}), tol()));
  EXPECT_TRUE(near(importance_loss(r), 0.163518, tol()));
  EXPECT_TRUE(near(smooth_load(r), torch::tensor({1.452414, 1.308538, 1.613544, 1.147407}, torch::kDouble), tol()));
  EXPECT_TRUE(near(load_loss(r), 0.015610, tol()));
  // The specification prints no gradients here: central differences give them.
  const auto loss = [](const std::vector<at::Tensor>& leaf) {
    const at::Tensor epsilon = test::example_epsilon().to(leaf[0].scalar_type());
    const Routing again = route_noisy_topk(leaf[0], noise_scale(leaf[1], 0), epsilon, 2);
    return importance_loss(again) + load_loss(again);
  };
  EXPECT_LT(test::gradient_error_in(GetParam(), loss, {zero, zero}), tol());
}

// Counts of tokens: no gradient. S10 is about what the same router learns from the task (task_gradient_test.cpp).
TEST_P(NoisyTopK, S9_ZeroInitialisationSpreadsTokensEvenly) {
  auto router = build_router(16, 8);
  initialize(*router, 1);
  router->to(GetParam());
  const Routing r = router->route(token_batch(test::random_tensor({10000, 16}, 3, GetParam())));
  EXPECT_EQ(r.noisy_logits.scalar_type(), GetParam());
  const at::Tensor share = r.chosen_count.to(torch::kDouble) / 10000;
  EXPECT_TRUE(near(share, torch::full({8}, 2.0 / 8), 0.02));
  // every logit ties: the lowest experts win
  const Routing tied = router->route(test::evaluated(token_batch(torch::ones({3, 16}, GetParam()))));
  EXPECT_TRUE(torch::equal(tied.expert, torch::tensor({0, 1, 0, 1, 0, 1}, torch::kLong)));
}

TEST(NoisyTopKRouter, GatesHaveTheRightGradients) {
  at::Tensor clean = test::random_tensor({5, 4}, 1), raw = test::random_tensor({5, 4}, 2);
  const at::Tensor epsilon = test::random_tensor({5, 4}, 3), upstream = test::random_tensor({10}, 4);
  const auto loss = [&] { return (route_noisy_topk(clean, noise_scale(raw, 0.01), epsilon, 2).gate * upstream).sum(); };
  EXPECT_LT(test::gradient_error(loss, {clean, raw}), 1e-8);
}

// Noise is sampled: no gradient.
TEST_P(NoisyTopK, S33_NoiseIsKeyedByImageNumberNotByBatchSplit) {
  auto router = build_router(5, 3);  // 3 experts: parts begin in the middle of a block of four samples
  initialize(*router, 1);
  router->to(GetParam());
  const at::Tensor x = test::random_tensor({101, 5}, 3, GetParam());
  const Routing whole = router->route(token_batch(x)), again = router->route(test::token_batch_of_images(x));
  EXPECT_TRUE(torch::equal(whole.noisy_logits, again.noisy_logits));
  std::vector<at::Tensor> parts;
  for (const auto& [first, last] : {std::pair<int64_t, int64_t>{0, 37}, {37, 38}, {38, 101}}) {
    parts.push_back(router->route(test::token_batch_of_images(x.slice(0, first, last), first)).noisy_logits);
  }
  EXPECT_TRUE(torch::equal(torch::cat(parts), whole.noisy_logits));
}

// In fp32, or in fp64 for fp64 weights: as for the same tokens in the type of the weights.
TEST_P(NoisyTopK, S35_ChoicesAreMadeInTheTypeOfTheWeightsForLowerPrecisionTokens) {
  auto router = build_router(32, 8);
  init_normal(router->weight, 0.3, RandomStream(1, "test"));
  init_normal(router->noise_weight, 0.3, RandomStream(2, "test"));
  router->to(GetParam());
  const at::Tensor x = test::random_tensor({500, 32}, 5, torch::kBFloat16);
  const at::Tensor upstream = test::random_tensor({1000}, 6, GetParam());
  const auto run = [&](const at::Tensor& tokens) {
    router->zero_grad();
    const Routing r = router->route(token_batch(tokens));
    (r.gate * upstream).sum().backward();
    return std::vector<at::Tensor>{r.expert, r.gate, router->weight.grad().clone(),
                                   router->noise_weight.grad().clone()};
  };
  const auto low = run(x), high = run(x.to(GetParam()));
  for (size_t i = 0; i < low.size(); ++i) EXPECT_TRUE(torch::equal(low[i], high[i])) << i;
  EXPECT_EQ(low[1].scalar_type(), GetParam());
}

// A choice has no gradient.
TEST_P(NoisyTopK, S36_TiesGoToTheLowestIndexAndNanRanksLast) {
  const at::Tensor h = torch::tensor({{1., 1., 0., 0.}}, GetParam());
  EXPECT_EQ(route_noisy_topk(h, {}, {}, 1).expert.item<int64_t>(), 0);
  EXPECT_TRUE(torch::equal(route_noisy_topk(h, {}, {}, 3).expert, torch::tensor({0, 1, 2}, torch::kLong)));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const at::Tensor broken = torch::tensor({{nan, 1., nan, 2.}}, GetParam());
  EXPECT_TRUE(torch::equal(route_noisy_topk(broken, {}, {}, 4).expert, torch::tensor({3, 1, 0, 2}, torch::kLong)));
}

TEST_P(NoisyTopK, S37_SoftplusAtItsEnds) {
  const at::Tensor raw = torch::tensor({-20., -1., 0., 30.}, GetParam()).requires_grad_(true);
  const at::Tensor scale = noise_scale(raw, 0);
  EXPECT_TRUE(near(scale, torch::tensor({2.061154e-09, 0.313262, 0.693147, 30.0}, torch::kDouble), tol()));
  EXPECT_NEAR(scale[0].item<double>() / 2.061154e-09, 1, tol());
  scale.sum().backward();  // the logistic function: 1 / (1 + e²⁰), 1 / (1 + e), 1/2, 1
  EXPECT_TRUE(near(raw.grad(), torch::tensor({2.061154e-09, 0.268941, 0.5, 1.}, torch::kDouble), tol()));
  EXPECT_NEAR(raw.grad()[0].item<double>() / 2.061154e-09, 1, tol());
  EXPECT_TRUE(torch::isfinite(noise_scale(torch::tensor({-1e4, 1e4}, GetParam()), 0)).all().item<bool>());
}

INSTANTIATE_TEST_SUITE_P(Types, NoisyTopK, ::testing::Values(torch::kFloat, torch::kDouble));

TEST(NoisyTopKRouter, EvaluationMayUseAnotherKAndNoise) {
  NoisyTopKOptions options;
  options.eval_k = 1;
  options.eval_noise = true;
  NoisyTopKRouter router(options, {4, 3});
  const Routing r = router.route(test::evaluated(token_batch(test::random_tensor({5, 4}, 6, torch::kFloat))));
  EXPECT_EQ(r.per_token, 1);
  EXPECT_TRUE(r.noise_scale.defined());
}

TEST(NoisyTopKRouter, MoreChoicesThanExpertsIsAnError) { EXPECT_THROW(build_router(4, 1), UsageError); }

}  // namespace sparsight::noisy_topk_test
