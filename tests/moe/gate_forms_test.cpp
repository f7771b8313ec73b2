// The forms of an MoE layer: smooth, top-1 without gate, top-k with softmax gates, renormalised. A worked example of
// three experts on two inputs: S = [[1,.5],[-.5,1],[.25,-.75]], V = [[1,-1],[.5,.5],[-1,.25]], a = (1,2,-1.5), c =
// (.5,-.25,0), f_i(x) = a_i tanh(<v_i,x>) + c_i, at x = (.3,-.2). The expected values were computed independently of
// this library.
#include <cmath>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <nlohmann/json.hpp>

#include "sparsight/moe/gate_sums.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/moe/routers/dense_softmax.h"
#include "sparsight/moe/routers/softmax_topk.h"
#include "sparsight/nn/init.h"
#include "tests/moe/robust_moe_example.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"
#include "tests/support/thread_count.h"

namespace sparsight::gate_forms_test {
namespace {

at::Tensor rows(const std::vector<double>& values, int64_t columns) {
  return torch::tensor(values, torch::kDouble).view({-1, columns});
}

at::Tensor linear_logits(const at::Tensor& x) { return x.matmul(rows({1, .5, -.5, 1, .25, -.75}, 2).t()); }

// [N,E]: every expert's output.
at::Tensor expert_outputs(const at::Tensor& x) {
  const at::Tensor a = rows({1, 2, -1.5}, 3), c = rows({.5, -.25, 0}, 3);
  return a * x.matmul(rows({1, -1, .5, .5, -1, .25}, 2).t()).tanh() + c;
}

// The example's experts: [R,2] -> [R,1].
class TanhExperts : public Experts {
 public:
  at::Tensor compute(const at::Tensor& x, const at::Tensor& offsets, const RowContext&) override {
    const at::Tensor expert = torch::repeat_interleave(torch::arange(3, torch::kLong), offsets.diff());
    return expert_outputs(x).gather(1, expert.unsqueeze(1));
  }
};

struct Value {
  double value;
  at::Tensor gradient;  // [1,2]
};

Value at_example(const std::function<Routing(const at::Tensor& logits)>& route) {
  const at::Tensor x = rows({.3, -.2}, 2).requires_grad_(true);
  TanhExperts experts;
  const at::Tensor y = experts.apply_routing(x, route(linear_logits(x)));
  y.sum().backward();
  return {y.item<double>(), x.grad()};
}

Routing top(const at::Tensor& logits, int64_t k, bool renormalize = false) {
  return route_softmax_topk(logits, {}, 0, k, renormalize);
}

Routing ungated_top1(const at::Tensor& logits) {
  Routing routing = top(logits, 1);
  apply_gate_rule(routing, GateRule::one);
  return routing;
}

std::shared_ptr<MoeLayer> layer_with(const std::string& gates, int64_t k, int64_t experts = 4) {
  const Json moe{{"experts", experts}, {"hidden", 8}, {"gates", gates}};
  const Json router{{"name", "softmax_topk"}, {"k", k}};
  auto layer = std::make_shared<MoeLayer>(read_moe_spec({{"moe", moe}, {"losses", Json::object()}, {"router", router}}),
                                          LayerContext{"moe", 6, 8});
  initialize(*layer, 1);
  layer->to(torch::kDouble);
  const torch::NoGradGuard no_grad;
  for (auto& p : layer->named_parameters()) p.value().copy_(test::random_tensor(p.value().sizes(), p.key().size()));
  return layer;
}

}  // namespace

TEST(GateForms, A1_TheSmoothFormIsTheSumOverAllExperts) {
  const at::Tensor x = test::random_tensor({200, 2}, 1), p = linear_logits(x).softmax(1);
  EXPECT_LT((p.sum(1) - 1).abs().max().item<double>(), 1e-12);
  TanhExperts experts;
  const at::Tensor y = experts.apply_routing(x, route_dense_softmax(linear_logits(x)));
  EXPECT_TRUE(test::near(y.squeeze(1), (p * expert_outputs(x)).sum(1), 1e-12));
}

TEST(GateForms, A2_ReproducesTheWorkedExample) {
  EXPECT_TRUE(test::near(linear_logits(rows({.3, -.2}, 2)).softmax(1), rows({.384281, .221711, .394009}, 3), 1e-6));
  const Value ungated = at_example(ungated_top1), one = at_example([](const auto&z) { return top(z, 1); }),
              two = at_example([](const auto&z) { return top(z, 2); }),
              three = at_example([](const auto&z) { return top(z, 3); }),
              smooth = at_example([](const auto&z) { return route_dense_softmax(z); });
  EXPECT_NEAR(ungated.value, 0.504563, 1e-6);
  EXPECT_TRUE(test::near(ungated.gradient, rows({1.330277, -.332569}, 2), 1e-6));
  EXPECT_NEAR(one.value, 0.198802, 1e-6);
  EXPECT_TRUE(test::near(one.gradient, rows({.499901, -.303664}, 2), 1e-6));
  EXPECT_NEAR(two.value, 0.568525, 1e-6);
  EXPECT_TRUE(test::near(two.gradient, rows({1.034331, -.464774}, 2), 1e-6));
  EXPECT_NEAR(three.value, 0.535250, 1e-6);
  EXPECT_TRUE(test::near(three.gradient, rows({1.284502, -.272954}, 2), 1e-6));
  EXPECT_NEAR(smooth.value, three.value, 1e-12);
  EXPECT_TRUE(test::near(smooth.gradient, three.gradient, 1e-12));
}

TEST(GateForms, A2_ALayerWithGatesOfOneIsTheBestExpertItself) {
  const auto gated = layer_with("router", 1), ungated = layer_with("one", 1);
  const MoeInput input{test::random_tensor({20, 6}, 3), {4, 5, 0, 0, 0}, ForwardMode::training(), {1, 1}};
  const MoeOutput with = gated->forward(input), without = ungated->forward(input);
  EXPECT_TRUE(torch::equal(with.routing.expert, without.routing.expert));
  EXPECT_TRUE(test::near(with.tokens, without.tokens * with.routing.gate.unsqueeze(1), 1e-12));
  // The task's loss has no gradient to the router; the balance losses have.
  without.tokens.sum().backward();
  EXPECT_FALSE(ungated->named_parameters()["router.weight"].grad().defined());
  ASSERT_EQ(without.routing.losses.size(), 2u);
  without.routing.losses[0].value.backward();
  EXPECT_GT(ungated->named_parameters()["router.weight"].grad().abs().max().item<double>(), 0);
}

TEST(GateForms, A3_TheSoftmaxComesBeforeTheChoiceAndIsNotRenormalised) {
  const at::Tensor logits = test::random_tensor({50, 5}, 2), p = logits.softmax(1);
  const Routing plain = top(logits, 2), divided = top(logits, 2, true);
  const at::Tensor best = std::get<0>(p.topk(2, 1));
  EXPECT_TRUE(test::near(plain.gate.view({50, 2}), best, 1e-12));
  EXPECT_TRUE(test::near(divided.gate.view({50, 2}), best / best.sum(1, true), 1e-12));
  EXPECT_NEAR(at_example([](const auto& z) { return top(z, 2, true); }).value, 0.730481, 1e-6);
}

TEST(GateForms, A4_TiesGoToTheLowestExpertForAnyNumberOfThreads) {
  const at::Tensor tied = torch::zeros({3000, 6}, torch::kDouble);
  const at::Tensor some = torch::tensor({{1., 3., 3., 2., 3., 0.}}, torch::kDouble);
  for (const int threads : {1, 2, 1, 2}) {
    const test::ThreadCount scope(threads);
    EXPECT_TRUE(torch::equal(top(tied, 2).expert.view({3000, 2}), torch::arange(2, torch::kLong).expand({3000, 2})));
    EXPECT_TRUE(torch::equal(top(some, 2).expert, torch::tensor({1, 2}, torch::kLong)));
  }
}

// Two slots for each of three experts and two choices of six tokens: tokens 2 and 4 are dropped.
TEST(GateForms, A7_AFullyDroppedTokenGetsExactlyZero) {
  const Routing routing = test::routed_group(test::clean_group(), 2);
  TanhExperts experts;
  const at::Tensor y = experts.apply_routing(test::random_tensor({6, 2}, 1), routing).squeeze(1);
  for (int64_t t = 0; t < 6; ++t) EXPECT_EQ(y[t].item<double>() == 0, t == 2 || t == 4) << t;
}

TEST(GateForms, A11_NoiseHasAStandardDeviationOfOneOverTheExpertsAndVanishesInEvaluation) {
  for (const int64_t experts : {2, 4, 8}) {
    const auto layer = layer_with("router", 2, experts);
    const auto route = [&](const ForwardMode& mode, uint64_t step) {
      return layer->route({test::random_tensor({20000, 6}, 1), {200, 100, 0, 0, 0}, mode, {1, step}});
    };
    const Routing noisy = route(ForwardMode::training(), 1);
    const double expected = 1.0 / static_cast<double>(experts);
    EXPECT_NEAR((noisy.noisy_logits - noisy.clean_logits).std().item<double>(), expected, 0.02 * expected);
    EXPECT_NEAR(noisy.noise_scale.item<double>(), expected, 1e-12);
    const Routing first = route({}, 1), second = route({}, 2);
    EXPECT_TRUE(torch::equal(first.gate, second.gate) && torch::equal(first.expert, second.expert));
    EXPECT_TRUE(torch::equal(first.clean_logits, first.noisy_logits));
    EXPECT_FALSE(torch::equal(noisy.noisy_logits, route(ForwardMode::training(), 2).noisy_logits));
  }
}

}  // namespace sparsight::gate_forms_test
