#include "sparsight/moe/routers/hierarchical.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sparsight/core/error.h"
#include "sparsight/moe/dispatch/rows.h"
#include "sparsight/moe/losses/importance.h"
#include "sparsight/moe/losses/load.h"
#include "sparsight/moe/routers/noisy_topk.h"
#include "tests/moe/routers/token_batch.h"
#include "tests/moe/shazeer_example.h"
#include "tests/support/gradcheck.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"
#include "tests/support/typed_gradcheck.h"

namespace sparsight::hierarchical_test {
namespace {

using test::dense_gates;
using test::near;
using test::table;
using test::token_batch;

// The worked example: 3 tokens, 2 groups of 2 experts. Rows of a group's router that its group is not chosen for are
// there too, and must not matter.
struct Example {
  NoisyLogits primary;
  std::vector<NoisyLogits> groups;

  explicit Example(at::ScalarType type) {
    const auto leaf = [&](const std::vector<std::vector<double>>& rows) {
      return table(rows).to(type).clone().requires_grad_(true);
    };
    const auto samples = [&](const std::vector<std::vector<double>>& rows) { return table(rows).to(type); };
    primary = {leaf({{0.8, -0.2}, {-0.5, 0.4}, {0.1, 0.3}}), leaf({{0.7, 0.9}, {0.6, 1.1}, {0.8, 0.5}}),
               samples({{0.3, -0.4}, {-1.0, 0.2}, {0.9, -0.6}})};
    groups = {{leaf({{0.5, 0.1}, {-0.4, 0.6}, {-0.3, 0.2}}), leaf({{0.6, 0.8}, {0.9, 0.5}, {0.7, 0.4}}),
               samples({{-0.5, 0.2}, {0.1, 0.3}, {1.2, -0.8}})},
              {leaf({{0.2, -0.1}, {0.7, 0.3}, {-0.6, 0.4}}), leaf({{0.5, 0.5}, {0.8, 0.6}, {1.0, 0.7}}),
               samples({{0.4, -0.3}, {-0.9, 1.0}, {0.2, 0.6}})}};
  }

  // The primary router by itself.
  Routing route_groups(int64_t k_groups) const {
    return route_noisy_topk(primary.clean, primary.scale, primary.epsilon, k_groups);
  }
  // A group's router by itself, on the tokens of a list.
  Routing route_inside(int64_t group, const std::vector<int64_t>& tokens, int64_t k) const {
    const NoisyLogits& all = groups[static_cast<size_t>(group)];
    const at::Tensor token = torch::tensor(tokens, torch::kLong);
    return route_noisy_topk(all.clean.index_select(0, token), all.scale.index_select(0, token),
                            all.epsilon.index_select(0, token), k);
  }

  Routing route(int64_t k_groups, int64_t k, const at::Tensor& valid = {}) const {
    const auto secondary = [&](int64_t group, const at::Tensor& token) {
      const NoisyLogits& all = groups[static_cast<size_t>(group)];
      return NoisyLogits{all.clean.index_select(0, token), all.scale.index_select(0, token),
                         all.epsilon.index_select(0, token)};
    };
    return route_hierarchical(primary, secondary, 4, k_groups, k, valid);
  }
};

std::shared_ptr<HierarchicalRouter> build_router(int64_t experts, int64_t groups, int64_t k_groups, int64_t k) {
  HierarchicalOptions options;
  options.groups = groups;
  options.k_groups = k_groups;
  options.k = k;
  return std::make_shared<HierarchicalRouter>(options, RouterShape{5, experts});
}

void randomize(HierarchicalRouter& router) {
  for (auto& p : router.named_parameters()) init_normal(p.value(), 0.7, RandomStream(3, p.key()));
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

class Hierarchical : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  double tol() const { return test::example_tolerance(GetParam()); }
};

// What each router does by itself, and how the loads of both levels make up that of an expert: Load_p of the group
// times Load_i of the expert / |X_i|.
TEST_P(Hierarchical, S12_ReproducesTheStagesOfT9) {
  const Example e(GetParam());
  const Routing groups = e.route_groups(1);
  EXPECT_TRUE(near(groups.noisy_logits, table({{1.01, -0.56}, {-1.1, 0.62}, {0.82, 0}}), tol()));
  EXPECT_TRUE(torch::equal(groups.expert, torch::tensor({0, 1, 0}, torch::kLong)));  // X_0 = {0,2}, X_1 = {1}
  EXPECT_TRUE(
      near(load_probability(groups), table({{0.973983, 0.089402}, {0.030974, 0.913659}, {0.549738, 0.149170}}), tol()));
  EXPECT_TRUE(near(smooth_load(groups), torch::tensor({1.554696, 1.152231}, torch::kDouble), tol()));
  const at::Tensor inside =
      torch::stack({smooth_load(e.route_inside(0, {0, 2}, 1)), smooth_load(e.route_inside(1, {1}, 1))});
  EXPECT_TRUE(near(inside, table({{1.053956, 0.647924}, {0.401294, 0.703099}}), tol()));

  const at::Tensor load = smooth_load(groups).detach().requires_grad_(true);
  const at::Tensor size = torch::tensor({2., 1.}, GetParam());
  const at::Tensor combined = load.unsqueeze(1) * inside.detach() / size.unsqueeze(1);
  EXPECT_TRUE(near(smooth_load(e.route(1, 1)).view({2, 2}), combined, 0.1 * tol()));
  cv_squared(combined.flatten()).backward();
  EXPECT_TRUE(near(load.grad(), torch::tensor({0.007607, -0.010264}, torch::kDouble), tol()));

  const Routing both = e.route_groups(2);
  EXPECT_TRUE(
      near(dense_gates(both), table({{0.827784, 0.172216}, {0.151871, 0.848129}, {0.694236, 0.305764}}), tol()));
  EXPECT_TRUE(near(smooth_load(both), torch::tensor({3., 3.}, torch::kDouble), 0));
}

TEST_P(Hierarchical, S12_ReproducesT9aAndThePrimaryGradient) {
  const Example e(GetParam());
  const Routing r = e.route(1, 1);
  EXPECT_TRUE(near(dense_gates(r), table({{0, 1, 0, 0}, {0, 0, 0, 1}, {1, 0, 0, 0}}), 0));
  EXPECT_TRUE(near(importance(r).view({2, 2}), table({{1, 1}, {0, 1}}), tol()));
  EXPECT_TRUE(near(importance_loss(r), 0.333333, tol()));
  EXPECT_TRUE(near(smooth_load(r).view({2, 2}), table({{0.819290, 0.503663}, {0.462383, 0.810132}}), tol()));
  const at::Tensor loss = load_loss(r);
  EXPECT_TRUE(near(loss, 0.065857, tol()));
  loss.backward();
  EXPECT_TRUE(near(e.primary.clean.grad(), table({{0.002500, -0.002500}, {0.002355, -0.002355}, {0.008533, -0.008533}}),
                   tol()));
}

TEST_P(Hierarchical, S12_ReproducesT9b) {
  const Routing r = Example(GetParam()).route(2, 1);
  EXPECT_TRUE(near(dense_gates(r),
                   table({{0, 0.827784, 0.172216, 0}, {0, 0.151871, 0, 0.848129}, {0.694236, 0, 0, 0.305764}}), tol()));
  EXPECT_TRUE(torch::equal(r.expert, torch::tensor({1, 2, 3, 1, 0, 3}, torch::kLong)));  // by decreasing gate
  EXPECT_TRUE(near(importance(r).view({2, 2}), table({{0.694236, 0.979655}, {0.172216, 1.153892}}), tol()));
  EXPECT_TRUE(near(importance_loss(r), 0.245695, tol()));
  EXPECT_TRUE(near(smooth_load(r).view({2, 2}), table({{1.154620, 1.613545}, {1.295037, 1.735205}}), tol()));
  EXPECT_TRUE(near(load_loss(r), 0.026096, tol()));
  EXPECT_EQ(r.gate.scalar_type(), GetParam());
}

// Both settings of T9 and all routers; the specification prints only the primary one of (a).
TEST_P(Hierarchical, S12_GradientsOfT9AgreeWithCentralDifferences) {
  const Example e(torch::kDouble);
  std::vector<at::Tensor> values{e.primary.clean, e.primary.scale};
  for (const NoisyLogits& group : e.groups) values.insert(values.end(), {group.clean, group.scale});
  for (const int64_t k_groups : {1, 2}) {
    const auto loss = [&](const std::vector<at::Tensor>& leaf) {
      Example typed(leaf[0].scalar_type());
      typed.primary = {leaf[0], leaf[1], typed.primary.epsilon};
      for (size_t i = 0; i < 2; ++i) typed.groups[i] = {leaf[2 + 2 * i], leaf[3 + 2 * i], typed.groups[i].epsilon};
      const Routing r = typed.route(k_groups, 1);
      return (r.gate * test::random_tensor(r.gate.sizes(), 4, r.gate.scalar_type())).sum() + importance_loss(r) +
             load_loss(r);
    };
    EXPECT_LT(test::gradient_error_in(GetParam(), loss, values), tol()) << k_groups;
  }
}

TEST_P(Hierarchical, S13_AnEmptyGroupHasNoLoadAndNoNan) {
  // Tokens 0 and 2 choose group 0; without token 1 group 1 is empty.
  const Example e(GetParam());
  const at::Tensor valid = torch::tensor({true, false, true});
  const Routing r = e.route(1, 1, valid);
  const at::Tensor load = smooth_load(r).view({2, 2});
  EXPECT_TRUE((load[1] == 0).all().item<bool>());
  // Load_p[0] = 0.973983 + 0.549738 of the two tokens, times Load_0 / 2 of the example.
  EXPECT_TRUE(
      near(load[0], torch::tensor({1.523721 / 2 * 1.053956, 1.523721 / 2 * 0.647924}, torch::kDouble), 2 * tol()));
  load_loss(r).backward();
  for (const NoisyLogits& logits : {e.primary, e.groups[0]}) {
    EXPECT_TRUE(torch::isfinite(logits.clean.grad()).all().item<bool>());
    EXPECT_TRUE(torch::isfinite(logits.scale.grad()).all().item<bool>());
  }
  EXPECT_FALSE(e.groups[1].clean.grad().defined());
  EXPECT_TRUE((e.primary.clean.grad()[1] == 0).all().item<bool>());  // padding
}

TEST_P(Hierarchical, S12_ExactlyKpTimesKsExpertsPerToken) {
  for (int64_t k_groups = 1; k_groups <= 3; ++k_groups)
    for (int64_t k = 1; k <= 4; ++k) {
      auto router = build_router(12, 3, k_groups, k);
      router->to(GetParam());
      randomize(*router);
      const Routing r = router->route(token_batch(test::random_tensor({50, 5}, 1, GetParam())));
      EXPECT_EQ(r.per_token, k_groups * k);
      EXPECT_TRUE(torch::equal(torch::bincount(r.token, {}, 50), torch::full({50}, k_groups * k, torch::kLong)));
      EXPECT_EQ(std::get<0>(at::_unique(r.token * 12 + r.expert)).size(0), 50 * k_groups * k);
      EXPECT_TRUE(near(r.gate.view({50, -1}).sum(1), torch::ones({50}), 1e-5));
      const at::Tensor by_rank = r.gate.detach().view({50, -1});
      EXPECT_TRUE((by_rank.diff(1, 1) <= 0).all().item<bool>());
    }
}

TEST_P(Hierarchical, S14_EqualsAFlatEvaluationWithProductsOfGates) {
  auto router = build_router(9, 3, 2, 2);
  router->to(GetParam());
  randomize(*router);
  const double tol = GetParam() == torch::kDouble ? 1e-12 : 1e-5;
  const at::Tensor x = test::random_tensor({40, 5}, 1, GetParam()),
                   upstream = test::random_tensor({40, 5}, 2, GetParam());
  const auto gradients = [&](const at::Tensor& y, const at::Tensor& leaf) {
    router->zero_grad();
    (y * upstream).sum().backward();
    return std::vector<at::Tensor>{leaf.grad(), router->group_weight.grad().clone(), router->weight.grad().clone()};
  };
  const at::Tensor routed_x = x.clone().requires_grad_(true), flat_x = x.clone().requires_grad_(true);
  const Routing r = router->route(test::evaluated(token_batch(routed_x)));
  Scaling experts;
  const at::Tensor routed = experts.apply_routing(routed_x, r);
  const std::vector<at::Tensor> found = gradients(routed, routed_x);

  // Top 2 of 3, of groups and inside each: the softmax without the smallest.
  const auto two_of_three = [](const at::Tensor& logits) {
    return logits.masked_fill(logits == logits.amin(-1, true), -std::numeric_limits<double>::infinity()).softmax(-1);
  };
  const at::Tensor primary = two_of_three(flat_x.matmul(router->group_weight.t()));
  const at::Tensor secondary = two_of_three(flat_x.matmul(router->weight.t()).view({40, 3, 3}));
  const at::Tensor gates = (primary.unsqueeze(2) * secondary).view({40, 9});
  EXPECT_TRUE(near(dense_gates(r), gates, tol));
  const at::Tensor flat = flat_x * gates.matmul(torch::arange(1, 10, GetParam())).unsqueeze(1);
  EXPECT_TRUE(near(routed, flat, tol * flat.abs().max().item<double>()));
  const std::vector<at::Tensor> wanted = gradients(flat, flat_x);
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_TRUE(near(found[i], wanted[i], tol * wanted[i].abs().max().item<double>())) << i;
}

TEST(HierarchicalRouter, GatesAndLossesHaveTheRightGradients) {
  const Example e(torch::kDouble);
  const at::Tensor upstream = test::random_tensor({12}, 4);
  const auto loss = [&] {
    const Routing r = e.route(2, 2), one = e.route(1, 1);
    return (r.gate * upstream).sum() + importance_loss(r) + load_loss(one);
  };
  std::vector<at::Tensor> inputs{e.primary.clean, e.primary.scale};
  for (const NoisyLogits& group : e.groups) inputs.insert(inputs.end(), {group.clean, group.scale});
  EXPECT_LT(test::gradient_error(loss, inputs), 1e-8);
}

// The value of the load stays, and so does the gradient of everything but the thresholds.
TEST(HierarchicalRouter, TheGradientOfTheThresholdsCanBeCut) {
  const Example with(torch::kDouble), without(torch::kDouble);
  const auto gradients = [](const Example& e, bool threshold_gradient) {
    const auto secondary = [&](int64_t group, const at::Tensor& token) {
      const NoisyLogits& all = e.groups[static_cast<size_t>(group)];
      return NoisyLogits{all.clean.index_select(0, token), all.scale.index_select(0, token),
                         all.epsilon.index_select(0, token)};
    };
    const at::Tensor loss = load_loss(route_hierarchical(e.primary, secondary, 4, 1, 1, {}, threshold_gradient));
    loss.backward();
    return std::pair(loss.item<double>(), e.primary.clean.grad());
  };
  const auto [full, of_all] = gradients(with, true);
  const auto [cut, of_clean] = gradients(without, false);
  EXPECT_DOUBLE_EQ(full, cut);
  // Through the thresholds each logit is pushed by what the other one is pulled by: rows of 0 in sum. Without them the
  // gradient of a token's probability P_i is phi / s_i alone: P_0 = Phi((.8 + .56) / .7) for token 0, and so on.
  EXPECT_TRUE(near(of_all.sum(1), torch::zeros({3}), 1e-12));
  const auto density = [](double z) { return std::exp(-z * z / 2) / std::sqrt(2 * M_PI); };
  const double load0 = 0.007607, load1 = -0.010264;  // d CV²(Load_H) / d Load_p of the example
  EXPECT_NEAR(of_clean[0][0].item<double>(), load0 * density((.8 + .56) / .7) / .7, 1e-6);
  EXPECT_NEAR(of_clean[0][1].item<double>(), load1 * density((-.2 - 1.01) / .9) / .9, 1e-6);
}

// Counts of tokens: no gradient. What the router learns from the task: task_gradient_test.cpp.
TEST_P(Hierarchical, S9_ZeroInitialisationSpreadsTokensEvenly) {
  auto router = build_router(8, 4, 2, 2);
  initialize(*router, 1);
  router->to(GetParam());
  const Routing r = router->route(token_batch(test::random_tensor({10000, 5}, 3, GetParam())));
  EXPECT_TRUE(near(r.chosen_count.to(torch::kDouble) / 10000, torch::full({8}, 0.5), 0.02));
}

INSTANTIATE_TEST_SUITE_P(Types, Hierarchical, ::testing::Values(torch::kFloat, torch::kDouble));

TEST(HierarchicalRouter, NoiseIsKeyedByTokenNumber) {
  auto router = build_router(8, 4, 2, 1);
  initialize(*router, 1);
  const at::Tensor x = test::random_tensor({60, 5}, 3, torch::kFloat);
  const RouterInput tail = test::token_batch_of_images(x.slice(0, 21), 21);
  EXPECT_TRUE(torch::equal(router->route(tail).expert, router->route(token_batch(x)).expert.slice(0, 21 * 2)));
}

TEST(HierarchicalRouter, LevelsThatDoNotFitAreErrors) {
  EXPECT_THROW(build_router(8, 3, 1, 1), UsageError);  // 3 does not divide 8
  EXPECT_THROW(build_router(8, 2, 3, 1), UsageError);
  EXPECT_THROW(build_router(8, 4, 1, 3), UsageError);
}

}  // namespace sparsight::hierarchical_test
