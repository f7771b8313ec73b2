// The settings of [losses] that choose among published variants: read from a section, through the registry, each with
// its own worked number.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sparsight/core/config.h"
#include "sparsight/moe/finish_routing.h"
#include "sparsight/moe/losses/load.h"
#include "sparsight/moe/losses/token_sums.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/moe/routers/softmax_topk.h"
#include "tests/moe/shazeer_example.h"
#include "tests/support/near.h"

namespace sparsight::loss_variants_test {
namespace {

using test::near;
using test::NoisyExample;
using test::table;

// The loss `name` with the weight 1 and no other, under these variants.
at::Tensor compute_loss(const Routing& routing, const std::string& name, Json settings) {
  settings[name] = 1;
  const LossOptions options = with_default_weights(read_section<LossOptions>(Json{{"losses", settings}}, "losses"), {});
  const std::vector<NamedLoss> losses = compute_losses(routing, options);
  if (losses.size() != 1 || losses[0].name != name) return {};
  return losses[0].value;
}

struct Variant {
  const Routing& routing;
  std::string loss;
  Json settings;
  double expected;
};

}  // namespace

class LossSettings : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  double tol() const { return test::example_tolerance(GetParam()); }
  at::Tensor typed(const at::Tensor& values) const { return values.to(GetParam()); }
};

// A variance divided by E - 1 is E / (E - 1) times the loss.
TEST_P(LossSettings, EachSettingGivesItsWorkedNumber) {
  const at::Tensor clean = typed(test::example_logits());
  const Routing noisy = NoisyExample(GetParam()).route(), one = route_softmax_topk(clean, {}, 0, 1, false),
                two = route_softmax_topk(clean, {}, 0, 2, false),
                vmoe = route_softmax_topk(clean, typed(test::example_epsilon()), 0.25, 2, false);
  const Routing gmoe = route_softmax_topk(typed(table({{1, 0, -1}})), typed(table({{0, 0, 0}})), 1.0 / 3, 1, false);
  const Json none = Json::object(), unbiased{{"unbiased_variance", true}}, scores{{"vmoe_load_of", "scores"}},
             both{{"unbiased_variance", true}, {"vmoe_load_of", "scores"}};
  const std::vector<Variant> variants{
      {noisy, "importance", none, 0.127069},  // spec T2
      {noisy, "importance", unbiased, 0.169426},
      {noisy, "load", none, 0.041448},  // spec T3
      {noisy, "load", unbiased, 0.055263},
      {noisy, "load", {{"threshold_gradient", false}}, 0.041448},  // the value stays
      {vmoe, "vmoe_importance", none, 0.064853},                   // spec T12
      {vmoe, "vmoe_importance", unbiased, 0.064852765 * 4 / 3},
      {vmoe, "vmoe_load", none, 0.123314},
      {vmoe, "vmoe_load", unbiased, 0.123314201 * 4 / 3},
      // Phi((softmax(c) - t) / 0.25) with T12's softmax(clean) and t sums to 1.0721801 1.0947456 1.4695107 0.8623313:
      // mean 1.1246919, squared differences .0027575 .0008968 .1189000 .0688330, whose mean over 1.2649319 is .0378256.
      {vmoe, "vmoe_load", scores, 0.037826},
      {vmoe, "vmoe_load", both, 0.037825613 * 4 / 3},
      {gmoe, "vmoe_load", none, 1.983888},  // the check of the specification of GMoE
      {gmoe, "vmoe_load", unbiased, 2.975832},
      {gmoe, "vmoe_load", both, 2.278645},
      {two, "switch", none, 1.074095},  // spec T13
      {two, "switch", {{"switch_counts", "mean"}}, 1.074095},
      {two, "switch", {{"switch_counts", "first"}}, 1.106586},
      {two, "switch", {{"switch_counts", "sum"}}, 2.148190},
      {one, "switch", none, 1.106586},
      {one, "switch", {{"switch_form", "gshard"}}, 0.069161650},
      {two, "switch", {{"switch_counts", "sum"}, {"switch_form", "gshard"}}, 2.148189947 / 16},
  };
  for (const Variant& v : variants)
    EXPECT_TRUE(near(compute_loss(v.routing, v.loss, v.settings), v.expected, tol())) << v.loss << " " << v.settings;
}

// Spec T3, with the path through the threshold and without.
TEST_P(LossSettings, S4_TheThresholdPassesItsGradientOnUnlessTheSectionSaysNo) {
  const auto expect = [&](const Json& settings, const at::Tensor& wg, const at::Tensor& wn) {
    const NoisyExample e(GetParam());
    compute_loss(e.route(), "load", settings).backward();
    EXPECT_TRUE(near(e.wg.grad(), wg, tol())) << settings;
    EXPECT_TRUE(near(e.wn.grad(), wn, tol())) << settings;
  };
  expect(Json::object(),
         table({{-0.018462, -0.013391, 0.049307, -0.017454},
                {-0.006677, 0.068507, -0.022473, -0.039357},
                {-0.000916, -0.019049, 0.026490, -0.006524}}),
         table({{0.013009, 0.017375, 0.011655, 0.013832},
                {-0.023294, -0.022764, -0.005516, -0.021841},
                {0.012551, 0.001136, 0.004956, 0.005564}}));
  expect({{"threshold_gradient", false}},
         table({{0.012263, -0.023470, -0.011728, -0.003428},
                {-0.025112, 0.038272, 0.007423, -0.023196},
                {-0.013206, 0.001107, 0.007192, -0.017915}}),
         table({{0.032341, 0.015010, -0.000068, 0.015498},
                {-0.034893, -0.029858, 0.000298, -0.025921},
                {0.004819, 0.005866, 0.001716, 0.008067}}));
}

// Spec T11: the derivative to a score is M_th - M_bw, to a threshold m - (rows that exceed it).
TEST_P(LossSettings, S17_ScoresOfTheThresholdLossGetAGradientOnlyWhereTheSectionSaysSo) {
  for (const bool of_scores : {false, true}) {
    Routing r;
    r.tokens = r.experts = 4;
    r.scores = typed(table({{.40, .30, .20, .10}, {.55, .05, .15, .25}, {.10, .45, .15, .30}, {.34, .26, .22, .18}}))
                   .requires_grad_(true);
    r.threshold = torch::tensor({.45, .28, .12, .20}, GetParam()).requires_grad_(true);
    r.expert = torch::tensor({0, 0, 1, 1, 2, 2, 3, 3}, torch::kLong);
    r.token = torch::tensor({0, 1, 0, 2, 0, 3, 1, 2}, torch::kLong);
    const at::Tensor loss = compute_loss(r, "threshold", {{"threshold_score_gradient", of_scores}});
    EXPECT_TRUE(near(loss, 0.11, tol()));
    loss.backward();
    EXPECT_TRUE(near(r.threshold.grad(), torch::tensor({1., 0., -2., 0.}, torch::kDouble), tol()));
    EXPECT_EQ(r.scores.grad().defined(), of_scores);
    if (of_scores) {
      EXPECT_TRUE(near(r.scores.grad(), table({{-1, 0, 0, 0}, {0, 0, 1, 0}, {0, 0, 1, 0}, {0, 0, 0, 0}}), 0));
    }
  }
}

namespace {

// Spec T9: primary router, then both groups side by side.
at::Tensor t9_clean(bool primary) {
  return primary ? table({{0.8, -0.2}, {-0.5, 0.4}, {0.1, 0.3}})
                 : table({{0.5, 0.1, 0.2, -0.1}, {-0.4, 0.6, 0.7, 0.3}, {-0.3, 0.2, -0.6, 0.4}});
}
at::Tensor t9_scale(bool primary) {
  return primary ? table({{0.7, 0.9}, {0.6, 1.1}, {0.8, 0.5}})
                 : table({{0.6, 0.8, 0.5, 0.5}, {0.9, 0.5, 0.8, 0.6}, {0.7, 0.4, 1.0, 0.7}});
}

// A layer whose router has the logits and scales of T9 for the tokens of the identity matrix: weights are their
// transposes, behind the inverse of softplus.
std::shared_ptr<MoeLayer> t9_layer(at::ScalarType type, bool threshold_gradient) {
  const MoeSpec spec = read_moe_spec(
      {{"moe", {{"experts", 4}}},
       {"router", {{"name", "hierarchical"}, {"groups", 2}, {"k_groups", 1}, {"k", 1}, {"noise_floor", 0}}},
       {"losses", {{"importance", 0}, {"load", 1}, {"threshold_gradient", threshold_gradient}}}});
  auto layer = std::make_shared<MoeLayer>(spec, LayerContext{"moe", 3, 5});
  initialize(*layer, 1);
  layer->to(type);
  const torch::NoGradGuard no_grad;
  for (auto& p : layer->router().named_parameters()) {
    const bool primary = p.key().rfind("group_", 0) == 0, noise = p.key().find("noise") != std::string::npos;
    p.value().copy_((noise ? t9_scale(primary).expm1().log() : t9_clean(primary)).t());
  }
  return layer;
}

}  // namespace

// With one choice an expert's threshold is the other one's noisy logit, so that each pushes the other by what it is
// pulled itself: rows of d and -d. Without that path what is left is dLoad * phi(z) / s, z = (c - t) / s: for token 0
// and group 0 0.007607 * phi((.8 + .56) / .7) / .7 = 0.000657. Inside group i dLoad_H is multiplied by
// Load_p[i] / |X_i|. The primary gradient is T9's, the others were computed by these formulas in float64.
TEST_P(LossSettings, TheLayerHandsTheThresholdGradientToTheHierarchicalRouter) {
  for (const bool through : {true, false}) {
    const auto layer = t9_layer(GetParam(), through);
    RoutingContext pool;
    pool.samples["group_noise"] = table({{0.3, -0.4}, {-1.0, 0.2}, {0.9, -0.6}});
    pool.samples["noise"] = table({{-0.5, 0.2, 0.4, -0.3}, {0.1, 0.3, -0.9, 1.0}, {1.2, -0.8, 0.2, 0.6}});
    const MoeOutput out =
        layer->forward({torch::eye(3, GetParam()), {1, 3, 0, 0, 0}, ForwardMode::training(), {}, pool});
    ASSERT_EQ(out.routing.losses.size(), 1u);
    EXPECT_EQ(out.routing.losses[0].name, "load");
    EXPECT_TRUE(near(out.routing.losses[0].value, 0.065857, tol()));
    out.routing.losses[0].value.backward();
    const at::Tensor of_groups = layer->router().named_parameters()["group_weight"].grad().t();
    const at::Tensor of_experts = layer->router().named_parameters()["weight"].grad().t();
    if (through) {
      EXPECT_TRUE(near(of_groups, table({{0.002500, -0.002500}, {0.002355, -0.002355}, {0.008533, -0.008533}}), tol()));
      EXPECT_TRUE(near(of_experts,
                       table({{0.158196, -0.158196, 0, 0}, {0, 0, -0.245144, 0.245144}, {0.185568, -0.185568, 0, 0}}),
                       tol()));
    } else {
      EXPECT_TRUE(near(of_groups, table({{0.000657, -0.001843}, {0.000886, -0.001469}, {0.003764, -0.004769}}), tol()));
      EXPECT_TRUE(near(of_experts,
                       table({{0.072352, -0.085845, 0, 0}, {0, 0, -0.151598, 0.093547}, {0.064996, -0.120572, 0, 0}}),
                       tol()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, LossSettings, ::testing::Values(torch::kFloat, torch::kDouble));

// Three tokens with the best or the two best of three experts, 4 assignments: 3 to expert 0, 1 to expert 1. The
// thresholds of K = 2 would give a load of about 6.
TEST(VaryingLoad, IsCountedWhereTheRouterGivesNone) {
  Routing routing = route_softmax_topk(table({{3, 1, 0}, {4, 1, 0}, {5, 2, 0}}),
                                       table({{0, 0, 0}, {0, 0, 0}, {0, 0, 0}}), 0.1, 2, false);
  EXPECT_NEAR(smooth_load(routing).sum().item<double>(), 6, 1e-3);
  EXPECT_TRUE(compute_loss(routing, "load", Json::object()).defined());
  select_assignments(routing, torch::tensor({0, 2, 3, 4}, torch::kLong));
  routing.varying = true;
  EXPECT_TRUE(torch::equal(smooth_load(routing).to(torch::kLong), torch::tensor({3, 1, 0}, torch::kLong)));
  for (const char* loss : {"load", "vmoe_load"})
    EXPECT_FALSE(compute_loss(routing, loss, Json::object()).defined()) << loss;
  routing.smooth_load = torch::tensor({2.f, 1.f, 1.f});
  EXPECT_TRUE(torch::equal(smooth_load(routing), routing.smooth_load));
  // Mean 4/3, squared differences 4/9, 1/9, 1/9 with the mean 2/9: 2/9 over 16/9.
  EXPECT_NEAR(compute_loss(routing, "load", Json::object()).item<double>(), 0.125, 1e-6);
}

TEST(OwnLosses, AWeightOf0SkipsTheComputation) {
  const Routing routing = route_softmax_topk(table({{1, 0, -1}}), {}, 0, 1, false);
  int calls = 0;
  const auto value = [&](const Routing&) { return ++calls, torch::ones({}); };
  const LossOptions none = with_default_weights({}, {});
  EXPECT_TRUE(compute_losses(routing, none, {{"mine", 0, value}}).empty());
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(compute_losses(routing, none, {{"mine", 0.5, value}}).at(0).weight, 0.5);
}

TEST(TokenSums, CountTokensWithoutPadding) {
  Routing routing = route_softmax_topk(table({{1, 0, -1}, {0, 2, 1}, {0, 0, 1}}), {}, 0, 1, false);
  EXPECT_EQ(valid_token_count(routing), 3);
  drop_padding(routing, torch::tensor({true, false, true}));
  EXPECT_EQ(valid_token_count(routing), 2);
}

}  // namespace sparsight::loss_variants_test
