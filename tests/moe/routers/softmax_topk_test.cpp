#include "sparsight/moe/routers/softmax_topk.h"

#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "tests/moe/routers/token_batch.h"
#include "tests/moe/vmoe_example.h"
#include "tests/support/gradcheck.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"
#include "tests/support/typed_gradcheck.h"

namespace sparsight::softmax_topk_test {
namespace {

using test::token_batch;

std::shared_ptr<SoftmaxTopKRouter> build_router(int64_t width, int64_t experts, SoftmaxTopKOptions options = {}) {
  auto router = std::make_shared<SoftmaxTopKRouter>(options, RouterShape{width, experts});
  router->initialize({3, "router"});
  return router;
}

}  // namespace

class SoftmaxTopKExample : public ::testing::TestWithParam<at::ScalarType> {};

// The gradients of T12's losses are in losses/vmoe_losses_test.cpp.
// Noisy logits, probabilities, choices and gates of the worked example (tests/moe/vmoe_example.h).
TEST_P(SoftmaxTopKExample, S19_ReproducesT12) {
  const auto type = GetParam();
  const double tol = test::example_tolerance(type);
  const Routing r =
      route_softmax_topk(test::example_logits().to(type), test::example_epsilon().to(type), 0.25, 2, false);
  const auto near = [&](const at::Tensor& got, const at::Tensor& expected) {
    EXPECT_TRUE(torch::allclose(got.to(torch::kDouble), expected, 0, tol)) << got;
  };
  near(r.noisy_logits,
       torch::tensor({{1.075, -0.925, -0.2, 0.5}, {-1.125, 0.55, 1.925, -0.7}, {-0.2, 0.775, 0.075, -0.3}},
                     torch::kDouble));
  near(r.scores, torch::tensor({{0.505696, 0.068439, 0.141307, 0.284558},
                                {0.034502, 0.184200, 0.728524, 0.052774},
                                {0.170284, 0.451452, 0.224184, 0.154080}},
                               torch::kDouble));
  near(r.gate, torch::tensor({0.505696, 0.284558, 0.728524, 0.184200, 0.451452, 0.224184}, torch::kDouble));
  EXPECT_TRUE(torch::equal(r.expert, torch::tensor({0, 3, 2, 1, 1, 2}, torch::kLong)));
  EXPECT_TRUE(torch::equal(r.token, torch::tensor({0, 0, 1, 1, 2, 2}, torch::kLong)));
  EXPECT_TRUE(torch::equal(r.rank, torch::tensor({0, 1, 0, 1, 0, 1}, torch::kLong)));
  // Expert 0 has assignment 0; expert 1 has 3 and 4; expert 2 has 2 and 5; expert 3 has 1.
  EXPECT_TRUE(torch::equal(r.chosen_count, torch::tensor({1, 2, 2, 1}, torch::kLong)));
  EXPECT_TRUE(torch::equal(r.order, torch::tensor({0, 3, 4, 2, 5, 1}, torch::kLong)));
  EXPECT_TRUE(torch::equal(r.offsets, torch::tensor({0, 1, 3, 5, 6}, torch::kLong)));
  EXPECT_EQ(r.per_token, 2);
  EXPECT_TRUE(r.kept.all().item<bool>());
  EXPECT_EQ(r.gate.scalar_type(), type);
}

TEST_P(SoftmaxTopKExample, S11_RenormalizedGatesAreTheSoftmaxOfTheChosenLogits) {
  const auto type = GetParam();
  const double tol = type == torch::kDouble ? 1e-12 : 1e-6;
  const at::Tensor logits = test::random_tensor({50, 6}, 1, type);
  for (int64_t k = 1; k <= 6; ++k) {
    const Routing r = route_softmax_topk(logits, {}, 0, k, true), plain = route_softmax_topk(logits, {}, 0, k, false);
    const at::Tensor gate = r.gate.view({50, k}), p = plain.gate.view({50, k});
    EXPECT_TRUE(torch::allclose(gate, p / p.sum(1, true), tol, tol));
    EXPECT_TRUE(torch::allclose(gate.sum(1), torch::ones({50}, type), tol, tol));
    const auto loss = [&](const std::vector<at::Tensor>& leaf) {
      const at::Tensor chosen = route_softmax_topk(leaf[0], {}, 0, k, true).gate;
      return (chosen * test::random_tensor({7 * k}, 3, chosen.scalar_type())).sum();
    };
    EXPECT_LT(test::gradient_error_in(type, loss, {test::random_tensor({7, 6}, 2)}), test::example_tolerance(type))
        << k;
  }
}

// In fp32, or in fp64 for fp64 weights: as for the same tokens in the type of the weights.
TEST_P(SoftmaxTopKExample, S35_ChoicesAreMadeInTheTypeOfTheWeightsForLowerPrecisionTokens) {
  auto router = build_router(32, 8);
  router->to(GetParam());
  const at::Tensor tokens = test::random_tensor({500, 32}, 5, torch::kBFloat16);
  const auto run = [&](const at::Tensor& x) {
    router->zero_grad();
    const Routing r = router->route(test::evaluated(token_batch(x)));
    (r.gate * test::random_tensor({1000}, 6, GetParam())).sum().backward();
    return std::vector<at::Tensor>{r.expert, r.gate, router->weight.grad().clone()};
  };
  const auto low = run(tokens), high = run(tokens.to(GetParam()));
  for (size_t i = 0; i < low.size(); ++i) EXPECT_TRUE(torch::equal(low[i], high[i])) << i;
  EXPECT_EQ(low[1].scalar_type(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Types, SoftmaxTopKExample, ::testing::Values(torch::kFloat, torch::kDouble));

// TOP_k of p = (0.244728, 0.665241, 0.090031), and of ties: k values as they are, the rest 0.
TEST_P(SoftmaxTopKExample, M9_TopKKeepsTheLargestProbabilitiesAsTheyAre) {
  const auto rows = torch::tensor({{1., 2., 0.}, {0.5, 0.5, 0.5}, {-1., 3., 3.}}, GetParam());
  const at::Tensor p = at::softmax(rows, 1);
  const double tol = test::example_tolerance(GetParam());
  for (int64_t k = 1; k <= 3; ++k) {
    const Routing r = route_softmax_topk(rows, {}, 0, k, false);
    const at::Tensor g = at::zeros_like(p).index_put({r.token, r.expert}, r.gate);
    EXPECT_TRUE(torch::equal((g > 0).sum(1), torch::full({3}, k, torch::kLong))) << k;
    EXPECT_TRUE(test::near(g, at::where(g > 0, p, at::zeros_like(p)), tol)) << k;
    if (k == 1) {
      EXPECT_TRUE(test::near(g[0], torch::tensor({0., 0.665241, 0.}), std::max(tol, 1e-6)));
      EXPECT_TRUE(torch::equal(r.expert, torch::tensor({1, 0, 1}, torch::kLong)));  // ties: the lowest index
    }
    if (k == 3) {
      EXPECT_TRUE(test::near(g, p, tol));
    }
  }
}

TEST(SoftmaxTopK, GatesHaveTheRightGradients) {
  const at::Tensor epsilon = test::random_tensor({5, 4}, 2), upstream = test::random_tensor({10}, 3);
  for (const bool renormalize : {false, true}) {
    at::Tensor logits = test::random_tensor({5, 4}, 1);
    const auto loss = [&] { return (route_softmax_topk(logits, epsilon, 0.3, 2, renormalize).gate * upstream).sum(); };
    EXPECT_LT(test::gradient_error(loss, {logits}), 1e-8);
  }
}

TEST(SoftmaxTopK, HugeLogitsStillChooseTheRightExperts) {
  // All but one probability underflow to 0; the second choice is still the second largest logit.
  const Routing r = route_softmax_topk(torch::tensor({{-1e4, 0., 1e4, -5e3}}), {}, 0, 2, true);
  EXPECT_TRUE(torch::equal(r.expert, torch::tensor({2, 1}, torch::kLong)));
  EXPECT_TRUE(torch::isfinite(r.gate).all().item<bool>());
}

TEST(SoftmaxTopK, NoiseHasItsSizeFollowsTheStepAndStopsInEvaluation) {
  auto router = build_router(16, 8);
  const at::Tensor tokens = test::random_tensor({4000, 16}, 4, torch::kFloat);
  const Routing a = router->route(token_batch(tokens)), again = router->route(token_batch(tokens)),
                next = router->route(token_batch(tokens, 1));
  EXPECT_DOUBLE_EQ(a.noise_scale.item<double>(), 1.0 / 8);
  EXPECT_TRUE(torch::equal(a.noisy_logits, again.noisy_logits));
  EXPECT_FALSE(torch::equal(a.noisy_logits, next.noisy_logits));
  const at::Tensor noise = a.noisy_logits - a.clean_logits;  // 32000 samples of N(0, 1/64)
  EXPECT_NEAR(noise.mean().item<double>(), 0, 4 * 0.125 / std::sqrt(32000));
  EXPECT_NEAR(noise.std().item<double>(), 0.125, 4 * 0.125 / std::sqrt(64000));
  const Routing quiet = router->route(test::evaluated(token_batch(tokens)));
  EXPECT_FALSE(quiet.noise_scale.defined());
  EXPECT_TRUE(torch::equal(quiet.noisy_logits, quiet.clean_logits));
}

TEST(SoftmaxTopK, ATokensNoiseDoesNotDependOnTheTokensAfterIt) {
  auto router = build_router(16, 8);
  const at::Tensor tokens = test::random_tensor({100, 16}, 4, torch::kFloat);
  const Routing whole = router->route(token_batch(tokens)), part = router->route(token_batch(tokens.slice(0, 0, 37)));
  const auto noise = [](const Routing& r) { return r.noisy_logits - r.clean_logits; };
  EXPECT_TRUE(torch::allclose(noise(whole).slice(0, 0, 37), noise(part), 0, 1e-6));
}

TEST(SoftmaxTopK, EvaluationMayUseAnotherK) {
  SoftmaxTopKOptions options;
  options.eval_k = 1;
  auto router = build_router(4, 3, options);
  const at::Tensor tokens = test::random_tensor({5, 4}, 6, torch::kFloat);
  EXPECT_EQ(router->route(token_batch(tokens)).per_token, 2);
  EXPECT_EQ(router->route(test::evaluated(token_batch(tokens))).per_token, 1);
}

TEST(SoftmaxTopK, MoreChoicesThanExpertsIsAnError) { EXPECT_THROW(build_router(4, 1), UsageError); }

}  // namespace sparsight::softmax_topk_test
