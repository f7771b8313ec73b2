// Layers with thousands of experts, most of which have few tokens or none.
#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <nlohmann/json.hpp>

#include "sparsight/analysis/routing_accumulator.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/kernels/threads/own_threads.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/moe/routing_stats.h"
#include "sparsight/nn/init.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::many_experts_test {
namespace {

constexpr int64_t kExperts = 4096, kTokens = 1024, kImages = 4, kWidth = 16, kHidden = 8, kChoices = 2;

std::shared_ptr<MoeLayer> large_layer(const std::string& router, double capacity = 0) {
  Json chosen = {{"name", router}};
  if (router == "softmax_topk") chosen["k"] = kChoices;
  MoeSpec spec = read_moe_spec({{"moe", {{"experts", kExperts}, {"hidden", kHidden}}},
                                {"losses", Json::object()},
                                {"capacity", {{"factor", capacity}}},
                                {"router", chosen}});
  auto layer = std::make_shared<MoeLayer>(spec, LayerContext{"moe", kWidth, kHidden});
  initialize(*layer, 1);
  const torch::NoGradGuard no_grad;
  for (at::Tensor& p : layer->parameters()) p.mul_(20);  // far from zero, so that gates differ
  return layer;
}

MoeInput make_input(const at::Tensor& tokens, ForwardMode mode = ForwardMode::training()) {
  return {tokens, {kImages, tokens.size(0) / kImages, 0, 0, 0}, mode, {5, 6}};
}

at::Tensor weight(MoeLayer& layer, const std::string& name) { return *layer.named_parameters().find(name); }

// One assignment: the expert's MLP on the token, times the gate.
at::Tensor assigned(MoeLayer& layer, const at::Tensor& tokens, const Routing& routing, int64_t a) {
  const int64_t e = routing.expert[a].item<int64_t>(), t = routing.token[a].item<int64_t>();
  const at::Tensor hidden = at::gelu(tokens[t].matmul(weight(layer, "experts.w1")[e]) + weight(layer, "experts.b1")[e]);
  return (hidden.matmul(weight(layer, "experts.w2")[e]) + weight(layer, "experts.b2")[e]) * routing.gate[a];
}

class ManyExperts : public ::testing::TestWithParam<const char*> {};

}  // namespace

// Each token's output is the sum over its assignments, and experts without tokens get gradients of zero, not of noise.
TEST_P(ManyExperts, OutputsAndGradientsAreThoseOfTheAssignments) {
  const auto layer = large_layer(GetParam());
  const at::Tensor tokens = test::random_tensor({kTokens, kWidth}, 2, torch::kFloat).requires_grad_(true);
  const MoeOutput out = layer->forward(make_input(tokens));
  const Routing& routing = out.routing;
  ASSERT_EQ(out.tokens.sizes(), tokens.sizes());
  for (const int64_t t : {int64_t{0}, int64_t{500}, kTokens - 1}) {
    at::Tensor sum = at::zeros({kWidth});
    const at::Tensor own = (routing.token == t).nonzero().squeeze(1);
    for (int64_t i = 0; i < own.size(0); ++i) sum = sum + assigned(*layer, tokens, routing, own[i].item<int64_t>());
    EXPECT_TRUE(at::allclose(out.tokens[t], sum, 1e-4, 1e-4)) << t;
  }
  at::Tensor total = out.tokens.square().sum();
  for (const NamedLoss& loss : routing.losses) total = total + loss.weight * loss.value;
  total.backward();
  const at::Tensor of_expert = weight(*layer, "experts.w1").grad().abs().sum(at::IntArrayRef{1, 2});
  EXPECT_TRUE(((of_expert > 0) == (routing.chosen_count > 0)).all().item<bool>());
  EXPECT_TRUE(tokens.grad().isfinite().all().item<bool>());
  EXPECT_LE((routing.chosen_count > 0).sum().item<int64_t>(), kTokens * kChoices);
}

// 2,048 assignments, or 1,024 of a router with one choice: sums over 4,096 experts add up to them.
TEST_P(ManyExperts, StatisticsAddUp) {
  const auto layer = large_layer(GetParam(), 4);
  const Routing routing = layer->route(make_input(test::random_tensor({kTokens, kWidth}, 3, torch::kFloat)));
  const RoutingStats stats = routing_stats(routing);
  const auto sum = [](const std::vector<double>& v) { return std::accumulate(v.begin(), v.end(), 0.0); };
  EXPECT_EQ(stats.count.size(), static_cast<size_t>(kExperts));
  EXPECT_EQ(sum(stats.count), static_cast<double>(routing.expert.size(0)));
  EXPECT_EQ(sum(stats.kept), static_cast<double>(routing.order.size(0)));
  EXPECT_EQ(sum(stats.tokens_with), static_cast<double>(kTokens));
  RoutingAccumulator totals;
  totals.add({routing}, at::arange(kImages).remainder(2), 2);
  const Json layers = totals.layers(), by_class = totals.class_expert();
  EXPECT_EQ(layers[0]["load"].size(), static_cast<size_t>(kExperts));
  EXPECT_EQ(sum(numbers(by_class["moe"][0])) + sum(numbers(by_class["moe"][1])), sum(stats.count));
}

INSTANTIATE_TEST_SUITE_P(Routers, ManyExperts, ::testing::Values("softmax_topk", "cosine", "sigmoid_bias", "hash"),
                         [](const auto& info) { return std::string(info.param); });

// Without tensors the layer gives what it gives with them.
TEST(ManyExpertsLayer, CompiledItGivesTheSame) {
  const auto layer = large_layer("softmax_topk");
  const torch::NoGradGuard no_grad;
  const at::Tensor tokens = test::random_tensor({kTokens, kWidth}, 2, torch::kFloat);
  const at::Tensor plain = layer->forward(make_input(tokens, {})).tokens;
  engine::ProgramBuilder builder({.channels = 1, .height = kTokens, .width = kWidth, .mean = {}, .std = {}},
                                 {});  // one image
  const engine::Value in = builder.planes(), y = layer->compile(builder, in, engine::Value{}, {});
  const engine::Program program = builder.finish(y, y);
  engine::Session session;
  cpu::OwnThreads threads(2);
  const engine::Answer answer = program.run(session, threads, {.pixels = tokens.const_data_ptr<float>(), .images = 1});
  const at::Tensor got = at::from_blob(const_cast<float*>(answer.features), plain.sizes(), at::kFloat);
  EXPECT_TRUE(at::allclose(got, plain, 1e-5, 1e-5));
}

// Three steps of Adam on one batch lower the loss.
TEST(ManyExpertsLayer, TrainsOnOneBatch) {
  const auto layer = large_layer("softmax_topk");
  torch::optim::Adam adam(layer->parameters(), torch::optim::AdamOptions(1e-2));
  const at::Tensor tokens = test::random_tensor({kTokens, kWidth}, 2, torch::kFloat);
  std::vector<double> losses;
  for (int step = 0; step < 4; ++step) {
    adam.zero_grad();
    const at::Tensor loss = (layer->forward(make_input(tokens)).tokens - tokens).square().mean();
    losses.push_back(loss.item<double>());
    loss.backward();
    adam.step();
  }
  EXPECT_TRUE(std::is_sorted(losses.rbegin(), losses.rend())) << losses[0] << " " << losses[3];
}

}  // namespace sparsight::many_experts_test
