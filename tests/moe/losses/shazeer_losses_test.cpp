// The importance and load losses against the worked example of tests/moe/shazeer_example.h.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "sparsight/moe/finish_routing.h"
#include "sparsight/moe/losses/importance.h"
#include "sparsight/moe/losses/load.h"
#include "sparsight/moe/losses/routing_loss.h"
#include "sparsight/moe/register_moe.h"
#include "tests/moe/shazeer_example.h"
#include "tests/support/gradcheck.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::shazeer_losses_test {
namespace {

using test::near;
using test::NoisyExample;
using test::table;

at::Tensor row(const std::vector<double>& values) { return torch::tensor(values, torch::kDouble); }

}  // namespace

class ShazeerLosses : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  double tol() const { return test::example_tolerance(GetParam()); }
};

TEST_P(ShazeerLosses, S3_ImportanceReproducesT2) {
  const NoisyExample e(GetParam());
  const Routing r = e.route();
  const at::Tensor imp = importance(r);
  EXPECT_TRUE(near(imp, row({1.112672, 0.708006, 0.814600, 0.364723}), tol()));
  EXPECT_NEAR(imp.sum().item<double>(), 3, 1e-6);  // N
  EXPECT_TRUE(near(importance_loss(r), 0.127069, tol()));
  EXPECT_NEAR(std::sqrt(importance_loss(r).item<double>()), 0.356468, tol());
  EXPECT_TRUE(near(importance_loss(r, /*unbiased=*/true), 0.169426, tol()));

  at::Tensor leaf = imp.detach().requires_grad_(true);
  cv_squared(leaf).backward();
  EXPECT_TRUE(near(leaf.grad(), row({0.237662, -0.122041, -0.027291, -0.427181}), tol()));

  importance_loss(r).backward();
  // The clean logits enter only through the noisy ones: dc = dh.
  EXPECT_TRUE(near(e.clean.grad(),
                   table({{0.154044, 0, 0, -0.154044}, {0, -0.014310, 0.014310, 0}, {0.089742, -0.089742, 0, 0}}),
                   tol()));
  EXPECT_TRUE(near(e.wg.grad(),
                   table({{0.041867, 0.105022, 0.007155, -0.154044},
                          {-0.009716, -0.088771, 0.021465, 0.077022},
                          {0.083382, -0.030561, -0.014310, -0.038511}}),
                   tol()));
  EXPECT_TRUE(near(e.wn.grad(),
                   table({{-0.030626, -0.043969, 0.003446, -0.053955},
                          {0.022371, 0.020337, 0.010338, 0.026978},
                          {0.038221, 0.020274, -0.006892, -0.013489}}),
                   tol()));
  EXPECT_TRUE(
      near(e.x.grad(),
           table({{0.085013, -0.027596, 0.071213}, {0.010989, 0.000141, -0.008568}, {0.097652, -0.052614, 0.052646}}),
           tol()));
}

TEST_P(ShazeerLosses, S4_LoadReproducesT3) {
  const NoisyExample e(GetParam());
  const Routing r = e.route();
  const at::Tensor threshold = kth_excluding(r.noisy_logits, 2);
  EXPECT_TRUE(near(threshold,
                   table({{0.003417, 0.760752, 0.760752, 0.003417},
                          {0.803353, -0.891173, -0.891173, 0.803353},
                          {0.121718, 0.121718, 0.240689, 0.240689}}),
                   tol()));
  // The supplier of each threshold is where its gradient goes.
  const std::vector<std::vector<int64_t>> supplier{{2, 3, 3, 2}, {1, 3, 3, 1}, {2, 2, 0, 0}};
  for (int64_t j = 0; j < 3; ++j)
    for (int64_t i = 0; i < 4; ++i) {
      const at::Tensor from = torch::autograd::grad({threshold[j][i]}, {r.noisy_logits}, {}, /*retain_graph=*/true)[0];
      at::Tensor wanted = torch::zeros({3, 4}, GetParam());
      wanted[j][supplier[static_cast<size_t>(j)][static_cast<size_t>(i)]] = 1;
      EXPECT_TRUE(torch::equal(from, wanted)) << j << " " << i;
    }
  EXPECT_TRUE(near(load_probability(r),
                   table({{0.902218, 0.008063, 0.132202, 0.696708},
                          {0.040599, 0.935521, 0.999995, 0.114056},
                          {0.100058, 0.791499, 0.327793, 0.327320}}),
                   tol()));
  const at::Tensor load = smooth_load(r);
  EXPECT_TRUE(near(load, row({1.042876, 1.735082, 1.459989, 1.138084}), tol()));
  EXPECT_NEAR(load.sum().item<double>(), 5.376031, tol());
  EXPECT_NEAR((load.max() / load.mean()).item<double>(), 1.290976, tol());
  EXPECT_TRUE(near(load_loss(r), 0.041448, tol()));
  EXPECT_NEAR(std::sqrt(load_loss(r).item<double>()), 0.203587, tol());
  EXPECT_TRUE(near(load_loss(r, true, /*unbiased=*/true), 0.055263, tol()));
  EXPECT_TRUE(torch::equal(r.chosen_count, torch::tensor({2, 2, 1, 1}, torch::kLong)));

  at::Tensor leaf = load.detach().requires_grad_(true);
  cv_squared(leaf).backward();
  EXPECT_TRUE(near(leaf.grad(), row({-0.098773, 0.092830, 0.016684, -0.072419}), tol()));
}

TEST_P(ShazeerLosses, S4_LoadGradientsReproduceT3) {
  const NoisyExample e(GetParam());
  load_loss(e.route()).backward();
  // e.clean also feeds the thresholds, e.scale the noise in them: the totals of dc and ds.
  EXPECT_TRUE(near(e.clean.grad(),
                   table({{-0.023316, 0.003557, 0.071098, -0.051339},
                          {-0.008568, 0.033398, 0.000001, -0.024831},
                          {-0.007311, 0.026918, 0.017433, -0.037041}}),
                   tol()));
  EXPECT_TRUE(near(e.scale.grad(),
                   table({{0.030178, 0.008559, 0.024469, 0.016700},
                          {-0.014941, -0.012040, -0.000003, -0.011319},
                          {-0.003989, -0.021848, 0.006552, -0.016569}}),
                   tol()));
  EXPECT_TRUE(near(e.wg.grad(),
                   table({{-0.018462, -0.013391, 0.049307, -0.017454},
                          {-0.006677, 0.068507, -0.022473, -0.039357},
                          {-0.000916, -0.019049, 0.026490, -0.006524}}),
                   tol()));
  EXPECT_TRUE(near(e.wn.grad(),
                   table({{0.013009, 0.017375, 0.011655, 0.013832},
                          {-0.023294, -0.022764, -0.005516, -0.021841},
                          {0.012551, 0.001136, 0.004956, 0.005564}}),
                   tol()));
  EXPECT_TRUE(
      near(e.x.grad(),
           table({{0.000868, 0.071109, -0.079774}, {-0.022172, 0.018085, -0.008846}, {-0.013579, 0.026587, -0.025327}}),
           tol()));
}

TEST_P(ShazeerLosses, S4_LoadWithoutTheGradientOfTheThreshold) {
  const NoisyExample e(GetParam());
  load_loss(e.route(), /*threshold_gradient=*/false).backward();
  EXPECT_TRUE(near(e.wg.grad(),
                   table({{0.012263, -0.023470, -0.011728, -0.003428},
                          {-0.025112, 0.038272, 0.007423, -0.023196},
                          {-0.013206, 0.001107, 0.007192, -0.017915}}),
                   tol()));
  EXPECT_TRUE(near(e.wn.grad(),
                   table({{0.032341, 0.015010, -0.000068, 0.015498},
                          {-0.034893, -0.029858, 0.000298, -0.025921},
                          {0.004819, 0.005866, 0.001716, 0.008067}}),
                   tol()));
}

TEST_P(ShazeerLosses, S3_S4_WithANoiseFloorAndTheWeightsOfThePaper) {
  const Routing floor = NoisyExample(GetParam(), 0.01).route();
  EXPECT_TRUE(near(importance(floor), row({1.117218, 0.701709, 0.815655, 0.365418}), tol()));
  EXPECT_TRUE(near(importance_loss(floor), 0.128620, tol()));
  EXPECT_TRUE(near(smooth_load(floor), row({1.043749, 1.730912, 1.453035, 1.129199}), tol()));
  EXPECT_TRUE(near(load_loss(floor), 0.041509, tol()));

  const NoisyTopKRouter router({}, {3, 4});
  double total = 0;
  for (const NamedLoss& loss :
       compute_losses(NoisyExample(GetParam()).route(), with_default_weights(LossOptions(), router.default_losses())))
    total += loss.weight * loss.value.item<double>();
  EXPECT_NEAR(total, 0.016852, tol());  // 0.1 * 0.127069 + 0.1 * 0.041448
}

TEST_P(ShazeerLosses, S15_PaddingIsExcludedAsInT10) {
  const NoisyExample e(GetParam());
  Routing r = e.route();
  drop_padding(r, torch::tensor({true, true, false}));
  EXPECT_TRUE(near(importance_loss(r), 0.234546, tol()));
  EXPECT_TRUE(near(load_loss(r), 0.014310, tol()));
  EXPECT_TRUE(torch::equal(r.chosen_count, torch::tensor({1, 1, 1, 1}, torch::kLong)));
  (importance_loss(r) + load_loss(r)).backward();
  for (const at::Tensor& grad : {e.clean.grad(), e.scale.grad()}) {
    EXPECT_TRUE((grad[2] == 0).all().item<bool>());
    EXPECT_GT(grad.narrow(0, 0, 2).abs().max().item<double>(), 1e-3);
  }
}

TEST_P(ShazeerLosses, S15_TheLossesAreOfTheWholeBatch) {
  const NoisyExample e(GetParam());
  const Routing r = e.route();
  Routing grouped = r;
  set_consecutive_groups(grouped, 2);  // groups are for capacity and the losses that are defined per group
  EXPECT_TRUE(near(importance_loss(grouped), 0.127069, tol()));
  // What the mean over shards {0,1} and {2} would be: another number, which must not be used.
  Routing first = r, second = r;
  drop_padding(first, torch::tensor({true, true, false}));
  drop_padding(second, torch::tensor({false, false, true}));
  EXPECT_TRUE(near(importance_loss(first), 0.234546, tol()));
  EXPECT_TRUE(near(importance_loss(second), 1.004088, tol()));
  // Shards add up: sums of importance over shards give the loss of the pool, and T2's gradient of it.
  const at::Tensor whole = cv_squared(importance(first) + importance(second));
  EXPECT_TRUE(near(whole, 0.127069, tol()));
  EXPECT_TRUE(near(cv_squared(smooth_load(first) + smooth_load(second)), 0.041448, tol()));
  whole.backward();
  EXPECT_TRUE(near(e.wg.grad(),
                   table({{0.041867, 0.105022, 0.007155, -0.154044},
                          {-0.009716, -0.088771, 0.021465, 0.077022},
                          {0.083382, -0.030561, -0.014310, -0.038511}}),
                   tol()));
}

TEST(ShazeerLoss, GradientsAgreeWithCentralDifferences) {
  at::Tensor clean = test::random_tensor({12, 5}, 1) * 0.5, raw = test::random_tensor({12, 5}, 2);
  const at::Tensor epsilon = test::random_tensor({12, 5}, 3);
  for (const int64_t k : {1, 2, 4}) {
    const auto route = [&] { return route_noisy_topk(clean, noise_scale(raw, 0.01), epsilon, k); };
    EXPECT_LT(test::gradient_error([&] { return importance_loss(route()); }, {clean, raw}), 1e-6) << k;
    EXPECT_LT(test::gradient_error([&] { return load_loss(route()); }, {clean, raw}), 1e-6) << k;
  }
}

// Fractions of samples have no gradient; that of the probability is T3's (S4).
TEST_P(ShazeerLosses, S5_TheProbabilityIsThatOfRedrawingOneExpertsNoise) {
  const NoisyExample e(GetParam());
  const Routing r = e.route();
  const at::Tensor probability = load_probability(r);
  constexpr int64_t kDraws = 400000;
  const at::Tensor draws = test::random_tensor({kDraws}, 11, GetParam());
  for (int64_t j = 0; j < 3; ++j)
    for (int64_t i = 0; i < 4; ++i) {
      // Expert i is chosen where its new value exceeds the second largest of the others.
      at::Tensor others = r.noisy_logits[j].detach().clone();
      others[i] = -1e30;
      const double threshold = std::get<0>(others.sort(-1, true))[1].item<double>();
      const at::Tensor redrawn = r.clean_logits[j][i].detach() + r.noise_scale[j][i].detach() * draws;
      const double share = (redrawn > threshold).to(torch::kDouble).mean().item<double>();
      EXPECT_NEAR(probability[j][i].item<double>(), share, 0.003) << j << " " << i;
    }
}

TEST(ShazeerLoss, ANoiseScaleThatUnderflowsGivesFiniteLosses) {
  at::Tensor clean = test::random_tensor({6, 4}, 1, torch::kFloat).requires_grad_(true);
  at::Tensor raw = torch::full({6, 4}, -200.f).requires_grad_(true);
  const at::Tensor loss = load_loss(route_noisy_topk(clean, noise_scale(raw, 0), torch::ones({6, 4}), 2));
  loss.backward();
  EXPECT_TRUE(torch::isfinite(loss).item<bool>());
  EXPECT_TRUE(torch::isfinite(clean.grad()).all().item<bool>());
  EXPECT_EQ(raw.grad().abs().max().item<double>(), 0);
}

TEST_P(ShazeerLosses, S37_NormalCdf) {
  const at::Tensor z = torch::tensor({-6., -3., 1.5}, GetParam()).requires_grad_(true);
  const at::Tensor cdf = normal_cdf(z);
  EXPECT_NEAR(cdf[0].item<double>() / 9.865876e-10, 1, GetParam() == torch::kFloat ? 1e-3 : 1e-6);
  EXPECT_NEAR(cdf[1].item<double>(), 0.001349898, 1e-8);
  EXPECT_NEAR(cdf[2].item<double>(), 0.933193, 1e-6);
  cdf.sum().backward();  // exp(-z²/2) / sqrt(2 pi)
  EXPECT_NEAR(z.grad()[0].item<double>() / 6.0758828e-09, 1, GetParam() == torch::kFloat ? 1e-5 : 1e-7);
  EXPECT_NEAR(z.grad()[1].item<double>(), 0.0044318484, 1e-8);
  EXPECT_NEAR(z.grad()[2].item<double>(), 0.1295175957, 1e-7);
}

TEST_P(ShazeerLosses, S42_IsZeroForOneExpertForAnEmptyBatchAndForZeros) {
  for (const bool unbiased : {false, true})
    for (at::Tensor v : {torch::tensor({5.}, GetParam()), torch::zeros({4}, GetParam())}) {
      v.requires_grad_(true);
      const at::Tensor loss = cv_squared(v, unbiased);
      loss.backward();
      EXPECT_EQ(loss.item<double>(), 0);
      EXPECT_TRUE(torch::equal(v.grad(), torch::zeros_like(v)));
    }
  const at::Tensor none = torch::empty({0, 4}, GetParam()).requires_grad_(true);
  const Routing empty = route_noisy_topk(none, none.detach(), none.detach(), 2);
  EXPECT_EQ(importance_loss(empty).item<double>(), 0);
  EXPECT_EQ(load_loss(empty).item<double>(), 0);
  (importance_loss(empty) + load_loss(empty)).backward();
  EXPECT_EQ(none.grad().sizes(), (std::vector<int64_t>{0, 4}));
}

// One token for each rotation of logits and noise: every expert has the same importance and load. With all tokens
// surely on the same k experts the losses are E/k - 1 for the load and, with equal gates, for the importance.
TEST_P(ShazeerLosses, AreZeroAtBalanceAndKnownWhereAllTokensAgree) {
  const auto rotations = [&](const std::vector<double>& values) {
    std::vector<at::Tensor> rows;
    for (int64_t j = 0; j < 4; ++j) rows.push_back(torch::tensor(values, torch::kDouble).roll(j));
    return torch::stack(rows).to(GetParam());
  };
  const at::Tensor clean = rotations({0.9, 0.2, -0.3, 0.1}).requires_grad_(true);
  const Routing even = route_noisy_topk(clean, torch::full({4, 4}, 0.5, GetParam()), rotations({0.3, -1, 0.7, 1.5}), 2);
  const double rounding = GetParam() == torch::kFloat ? 1e-12 : 1e-28;  // of CV², the square of relative differences
  EXPECT_NEAR(importance_loss(even).item<double>(), 0, rounding);
  EXPECT_NEAR(load_loss(even).item<double>(), 0, rounding);
  EXPECT_GT(smooth_load(even).min().item<double>(), 0.1);
  (importance_loss(even) + load_loss(even)).backward();  // a minimum
  EXPECT_TRUE(near(clean.grad(), torch::zeros({4, 4}), GetParam() == torch::kFloat ? 1e-6 : 1e-14));
  for (int64_t k = 1; k <= 3; ++k) {
    const at::Tensor same = (torch::arange(4) < k).to(GetParam()).expand({5, 4}) * 100;
    const Routing r = route_noisy_topk(same, torch::ones({5, 4}, GetParam()), torch::zeros({5, 4}, GetParam()), k);
    EXPECT_TRUE(near(load_loss(r), 4.0 / static_cast<double>(k) - 1, tol())) << k;
    EXPECT_TRUE(near(importance_loss(r), 4.0 / static_cast<double>(k) - 1, tol())) << k;
  }
}

// Everything but the gates is NaN, and made of the example's leaves: of all losses only the importance is a number. A
// term computed and multiplied by 0 would make the total and the gradients NaN.
TEST_P(ShazeerLosses, S43_AWeightOfZeroKeepsTheNanOfATermOut) {
  const NoisyExample e(GetParam());
  Routing r = e.route();
  r.clean_logits = r.noisy_logits = r.scores = e.clean * NAN;
  r.noise_scale = e.scale * NAN;
  r.threshold = r.target = e.scale.narrow(0, 0, 1) * NAN;
  LossOptions all;
  std::fill(all.weights.begin(), all.weights.end(), 1);
  const std::vector<NamedLoss> losses = compute_losses(r, all);
  EXPECT_EQ(losses.size(), routing_losses().size());
  for (const NamedLoss& loss : losses)
    EXPECT_EQ(std::isnan(loss.value.item<double>()), loss.name != "importance") << loss.name;

  at::Tensor total = torch::zeros({}, GetParam());
  for (const NamedLoss& loss : compute_losses(r, with_default_weights(LossOptions(), {{"importance", 1}})))
    total = total + loss.weight * loss.value;
  EXPECT_TRUE(near(total, 0.127069, tol()));  // T2, and its gradient
  total.backward();
  EXPECT_TRUE(near(e.clean.grad(),
                   table({{0.154044, 0, 0, -0.154044}, {0, -0.014310, 0.014310, 0}, {0.089742, -0.089742, 0, 0}}),
                   tol()));
  EXPECT_TRUE(torch::isfinite(e.scale.grad()).all().item<bool>());
}

INSTANTIATE_TEST_SUITE_P(Types, ShazeerLosses, ::testing::Values(torch::kFloat, torch::kDouble));

TEST(LossWeights, MinusOneStandsForTheRoutersPaper) {
  const auto loss_weight = [](const LossOptions& options, const std::string& name) {
    for (size_t i = 0; i < routing_losses().size(); ++i)
      if (routing_losses()[i].name == name) return options.weights[i];
    return -2.0;
  };
  LossOptions options;
  options.weights.back() = 0.5;
  const LossOptions resolved = with_default_weights(options, {{"load", 0.1}});
  EXPECT_EQ(loss_weight(resolved, "load"), 0.1);
  EXPECT_EQ(loss_weight(resolved, "importance"), 0);
  EXPECT_EQ(resolved.weights.back(), 0.5);
  options.weights[0] = -0.5;
  EXPECT_ANY_THROW(with_default_weights(options, {}));
}

}  // namespace sparsight::shazeer_losses_test
