#include "sparsight/moe/routers/cosine.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/moe/routers/token_batch.h"
#include "tests/support/gradcheck.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::cosine_test {

// The worked example of the router: D = P = 2, the identity as projection, temperature 1/2, token (3,4), directions
// (1,0), (0,1), (1,1).
TEST(Cosine, G4_ReproducesTheWorkedExample) {
  for (const auto type : {torch::kFloat, torch::kDouble}) {
    const at::Tensor logits =
        cosine_logits(torch::tensor({{3., 4.}}, type), torch::eye(2, type), torch::zeros({2}, type),
                      torch::tensor({{1., 0., 1.}, {0., 1., 1.}}, type), torch::tensor(std::log(2.), type));
    EXPECT_TRUE(test::near(logits, torch::tensor({{1.2, 1.6, 1.979899}}, torch::kDouble), 1e-6));
    EXPECT_TRUE(
        test::near(torch::softmax(logits, 1), torch::tensor({{0.213992, 0.319238, 0.466770}}, torch::kDouble), 1e-6));
  }
}

TEST(Cosine, LogitsHaveTheRightGradients) {
  at::Tensor x = test::random_tensor({6, 3}, 1), projector = test::random_tensor({4, 3}, 2),
             bias = test::random_tensor({4}, 3), codebook = test::random_tensor({4, 5}, 4),
             log_scale = torch::tensor(0.7, torch::kDouble);
  const at::Tensor upstream = test::random_tensor({6, 5}, 5);
  const auto loss = [&] { return (cosine_logits(x, projector, bias, codebook, log_scale) * upstream).sum(); };
  EXPECT_LT(test::gradient_error(loss, {x, projector, bias, codebook, log_scale}), 1e-7);
}

TEST(Cosine, G6_TheScaleIsBoundedAndGetsNoGradientAboveTheBound) {
  const at::Tensor log_scale = torch::tensor(9.).requires_grad_(true);
  const at::Tensor logits =
      cosine_logits(torch::tensor({{1.f, 0.f}}), torch::eye(2), torch::zeros({2}), torch::eye(2), log_scale);
  EXPECT_NEAR(logits[0][0].item<double>(), 100, 1e-3);
  logits.sum().backward();
  EXPECT_EQ(log_scale.grad().item<double>(), 0);
}

TEST(Cosine, ParametersAreThoseOfThePaper) {
  const CosineRouter router({}, {384, 6});
  int64_t count = 0;
  for (const at::Tensor& p : router.parameters()) count += p.numel();
  EXPECT_EQ(count, 100097);  // 384 * 256 + 256 + 256 * 6 + 1
}

TEST(Cosine, G5_LengthsDoNotMatter) {
  const at::Tensor x = test::random_tensor({9, 4}, 1), projector = test::random_tensor({5, 4}, 2),
                   bias = torch::zeros({5}, torch::kDouble), codebook = test::random_tensor({5, 3}, 4),
                   log_scale = torch::tensor(0.7, torch::kDouble);
  const at::Tensor logits = cosine_logits(x, projector, bias, codebook, log_scale);
  at::Tensor longer = codebook.clone();
  longer.select(1, 1).mul_(10);
  EXPECT_TRUE(test::near(cosine_logits(10 * x, projector, bias, codebook, log_scale), logits, 1e-12));
  EXPECT_TRUE(test::near(cosine_logits(x, projector, bias, longer, log_scale), logits, 1e-12));
}

TEST(Cosine, StartsAtItsTemperatureWhichMayBeFixed) {
  CosineOptions options;
  options.learn_temperature = false;
  CosineRouter router(options, {4, 3});
  initialize(router, 1);
  EXPECT_EQ(router.parameters().size(), 3u);
  EXPECT_EQ(router.buffers().size(), 1u);
  EXPECT_NEAR(router.log_scale.item<double>(), std::log(2.), 1e-6);
}

TEST(Cosine, G9_GatesAreRenormalizedForSeveralChoicesOnly) {
  for (const int64_t k : {1, 2}) {
    CosineOptions options;
    options.k = k;
    CosineRouter router(options, {4, 3});
    initialize(router, 1);
    const at::Tensor gate = router.route(test::token_batch(test::random_tensor({20, 4}, 2, torch::kFloat))).gate;
    const at::Tensor sum = gate.view({20, k}).sum(1);
    if (k == 1)
      EXPECT_LT(sum.max().item<double>(), 0.99);
    else
      EXPECT_TRUE(test::near(sum, torch::ones({20}), 1e-6));
  }
}

// In fp32, or in fp64 for fp64 weights: as for the same tokens in the type of the weights.
TEST(Cosine, S35_ChoosesInTheTypeOfTheWeightsForLowerPrecisionTokens) {
  for (const auto type : {torch::kFloat, torch::kDouble}) {
    CosineRouter router({}, {32, 6});
    initialize(router, 1);
    router.to(type);
    const at::Tensor x = test::random_tensor({300, 32}, 2, torch::kBFloat16);
    const auto run = [&](const at::Tensor& tokens) {
      router.zero_grad();
      const Routing r = router.route(test::evaluated(test::token_batch(tokens)));
      (r.gate * test::random_tensor(r.gate.sizes(), 6, type)).sum().backward();
      std::vector<at::Tensor> all{r.expert, r.gate};
      for (const at::Tensor& p : router.parameters()) all.push_back(p.grad().clone());
      return all;
    };
    const auto low = run(x), high = run(x.to(type));
    for (size_t i = 0; i < low.size(); ++i) EXPECT_TRUE(torch::equal(low[i], high[i])) << type << i;
  }
}

}  // namespace sparsight::cosine_test
