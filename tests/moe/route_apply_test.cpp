#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/moe/finish_routing.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/moe/route_tokens.h"
#include "sparsight/nn/init.h"
#include "tests/support/errors.h"
#include "tests/support/random_tensor.h"

namespace sparsight::route_apply_test {
namespace {

constexpr int64_t kWidth = 8, kExperts = 4, kImages = 6, kPerImage = 5, kTokens = kImages * kPerImage;
const TokenLayout kLayout{kImages, kPerImage, 0, 0, 0};

MoeSpec make_spec(const std::string& router) {
  return read_moe_spec({{"moe", {{"experts", kExperts}, {"hidden", 12}, {"shared", 1}}},
                        {"experts", {{"name", "mlp"}, {"dropout", 0.2}}},
                        {"capacity", {{"factor", 0.75}, {"eval_factor", 0}, {"group", 2}}},
                        {"losses", Json::object()},
                        {"router", {{"name", router}}}});
}

std::shared_ptr<MoeLayer> build_layer(const MoeSpec& spec, uint64_t seed = 1) {
  auto layer = std::make_shared<MoeLayer>(spec, LayerContext{"moe", kWidth, 12});
  initialize(*layer, seed);
  const torch::NoGradGuard no_grad;
  for (auto& p : layer->named_parameters())
    p.value().add_(test::random_tensor(p.value().sizes(), 7 + seed, torch::kFloat) * 0.2);
  return layer;
}

at::Tensor tokens(uint64_t seed = 3) { return test::random_tensor({kTokens, kWidth}, seed, torch::kFloat); }

MoeInput training(const at::Tensor& x) { return {x, kLayout, ForwardMode::training(), {1, 2}}; }

}  // namespace

TEST(RouteApply, ForwardIsTheTwoOneAfterTheOther) {
  for (const char* router : {"softmax_topk", "expert_choice", "soft_moe", "hierarchical"}) {
    const auto layer = build_layer(make_spec(router));
    const MoeOutput whole = layer->forward(training(tokens()));
    const Routing routing = layer->route(training(tokens()));
    EXPECT_TRUE(torch::equal(layer->apply(training(tokens()), routing), whole.tokens)) << router;
    EXPECT_EQ(routing.losses.size(), whole.routing.losses.size());
    EXPECT_EQ(routing.soft != nullptr, std::string(router) == "soft_moe");
  }
}

// The same decision for other tokens: the experts that were chosen, with the gates of then.
TEST(RouteApply, AReplayedRoutingDecidesForOtherTokens) {
  const auto layer = build_layer(make_spec("softmax_topk"));
  const MoeInput first{tokens(3), kLayout}, second{tokens(4), kLayout};
  const Routing decision = layer->route(first);
  ASSERT_FALSE(torch::equal(layer->route(second).expert, decision.expert));
  const at::Tensor replayed = layer->apply(second, decision);
  EXPECT_FALSE(torch::equal(replayed, layer->forward(second).tokens));
  // Experts are functions of a token: replacing the tokens of one image leaves the outputs of the others unchanged.
  at::Tensor mixed = tokens(3).clone();
  mixed.slice(0, 0, kPerImage).copy_(tokens(4).slice(0, 0, kPerImage));
  const at::Tensor partly = layer->apply({mixed, kLayout}, decision);
  EXPECT_TRUE(torch::equal(partly.slice(0, kPerImage), layer->forward(first).tokens.slice(0, kPerImage)));
  EXPECT_TRUE(torch::equal(partly.slice(0, 0, kPerImage), replayed.slice(0, 0, kPerImage)));
}

TEST(RouteApply, GradientsReachTheRouterThroughAppliedGates) {
  const auto layer = build_layer(make_spec("softmax_topk"));
  const Routing routing = layer->route(training(tokens()));
  layer->apply(training(tokens(5)), routing).square().sum().backward();
  EXPECT_GT(layer->named_parameters()["router.weight"].grad().abs().max().item<double>(), 0);
}

TEST(RouteApply, ARoutingOfOtherTokensOrExpertsIsRefused) {
  const auto layer = build_layer(make_spec("softmax_topk"));
  const Routing routing = layer->route({tokens().slice(0, 0, 10), {2, kPerImage, 0, 0, 0}});
  EXPECT_EQ(testing::error_text([&] {
              layer->apply({tokens(), kLayout}, routing);
            }),
            "the MoE layer moe has 30 tokens and 4 experts, but the routing has 10 tokens and 4 experts");
}

// A custom dispatcher that counts its runs.
TEST(RouteApply, ADispatcherReplacesTheLocalOne) {
  class Counting : public Dispatcher {
   public:
    at::Tensor run(const at::Tensor& x, const Routing& routing, Experts& experts,
                   const ExpertContext& context) override {
      ++runs;
      return local_dispatcher()->run(x, routing, experts, context);
    }
    int runs = 0;
  };
  for (const char* router : {"softmax_topk", "soft_moe"}) {
    MoeSpec spec = make_spec(router);
    const auto plain = build_layer(spec);
    const auto counting = std::make_shared<Counting>();
    spec.dispatcher = counting;
    const auto layer = build_layer(spec);
    EXPECT_TRUE(torch::equal(layer->forward(training(tokens())).tokens, plain->forward(training(tokens())).tokens));
    EXPECT_EQ(counting->runs, 1);
  }
}

// Each part of a pass is switched by itself.
TEST(ForwardModes, EachSwitchIsOneLine) {
  const auto layer = build_layer(make_spec("noisy_topk"));
  const auto run = [&](const ForwardMode& mode) { return layer->forward({tokens(), kLayout, mode, {1, 2}}); };
  const MoeOutput evaluated = run({});
  EXPECT_TRUE(evaluated.routing.losses.empty());
  EXPECT_FALSE(evaluated.routing.noise_scale.defined());
  EXPECT_FALSE(evaluated.routing.capacity.defined());

  ForwardMode losses;
  losses.losses = true;
  EXPECT_EQ(run(losses).routing.losses.size(), 1u);  // importance; load needs noise
  EXPECT_TRUE(torch::equal(run(losses).tokens, evaluated.tokens));

  ForwardMode no_dropout = ForwardMode::training();
  no_dropout.dropout = false;
  const MoeOutput quiet = run(no_dropout), full = run(ForwardMode::training());
  EXPECT_TRUE(quiet.routing.noise_scale.defined());
  EXPECT_TRUE(torch::equal(quiet.routing.expert, full.routing.expert));
  EXPECT_FALSE(torch::equal(quiet.tokens, full.tokens));

  ForwardMode roomy = no_dropout;
  roomy.capacity = false;  // eval_factor = 0
  EXPECT_FALSE(run(roomy).routing.capacity.defined());
  EXPECT_TRUE(run(no_dropout).routing.capacity.defined());
  EXPECT_LT(run(no_dropout).routing.kept.sum().item<int64_t>(), run(roomy).routing.kept.sum().item<int64_t>());
}

// An image keeps its noise, its dropout and its group of buffers when others leave the batch.
TEST(ImageNumbers, S33_DroppingRandomImagesChangesNoBitOfTheOthers) {
  for (const char* router : {"noisy_topk", "per_image", "hierarchical", "switch_top1", "random", "soft_moe"}) {
    MoeSpec spec = make_spec(router);
    spec.capacity.group = 1;
    const auto layer = build_layer(spec);
    const at::Tensor x = tokens().view({kImages, kPerImage, kWidth});
    const auto run = [&](const at::Tensor& image) {
      MoeInput input{x.index_select(0, image).reshape({-1, kWidth}),
                     {image.size(0), kPerImage, 0, 0, 0},
                     ForwardMode::training(),
                     {1, 2}};
      input.context.image = image + 100;
      return layer->forward(input).tokens.view({image.size(0), kPerImage, kWidth});
    };
    const at::Tensor all = run(torch::arange(kImages, torch::kLong));
    for (const std::vector<int64_t>& left : std::vector<std::vector<int64_t>>{{0}, {5}, {1, 4}, {4, 1}, {0, 2, 3, 5}}) {
      const at::Tensor image = torch::tensor(left, torch::kLong);
      EXPECT_TRUE(torch::allclose(run(image), all.index_select(0, image), 0, 1e-6)) << router << image;
    }
    EXPECT_FALSE(torch::allclose(run(torch::tensor({0}, torch::kLong)), all.narrow(0, 1, 1), 0, 1e-6));
  }
}

// Samples "noise" without listing it among its purposes.
class SilentSampler : public Router {
 public:
  std::vector<std::string> purposes;
  std::vector<std::string> random_purposes() const override { return purposes; }

 protected:
  Routing choose(const RouterInput& input) override {
    Routing routing;
    routing.tokens = input.tokens.size(0);
    routing.experts = kExperts;
    const at::Tensor noise = router_normal(input, torch::zeros({routing.tokens, kExperts}), "noise");
    choose_per_token(routing, noise.argmax(1, true), torch::ones({routing.tokens, 1}));
    finish_routing(routing);
    return routing;
  }
};

TEST(RouteTokens, RandomNumbersMustBeDeclared) {
  SilentSampler router;
  router.set_registered("silent", {kWidth, kExperts});
  RouterInput input{tokens(), kLayout, "moe", ForwardMode::training(), {1, 2}};
  const RoutingPolicy policy{{}, with_default_weights({}, {})};
  EXPECT_EQ(testing::error_text([&] { route_tokens(router, input, policy); }),
            "the router silent of the layer moe samples the random numbers \"noise\", which its random_purposes() does "
            "not list; add \"noise\" there");
  router.purposes = {"jitter", "noise"};
  std::set<std::string> requested;
  input.context.requested = &requested;
  route_tokens(router, input, policy);
  EXPECT_EQ(requested, std::set<std::string>{"noise"});
}

// Two experts for each token but the first, which has one.
class UnevenRouter : public Router {
 public:
  bool varying = false, skips = false;

 protected:
  Routing choose(const RouterInput& input) override {
    Routing routing;
    routing.tokens = input.tokens.size(0);
    routing.experts = kExperts;
    choose_per_token(routing, torch::tensor({{0, 1}}, torch::kLong).expand({routing.tokens, 2}),
                     torch::ones({routing.tokens, 2}));
    routing.varying = varying;
    routing.skips = skips;
    const at::Tensor wanted = torch::arange(2 * routing.tokens, torch::kLong);
    select_assignments(routing, wanted.masked_select(wanted != 1));
    return routing;
  }
};

TEST(RouteTokens, FewerChoicesMustBeDeclared) {
  UnevenRouter router;
  router.set_registered("uneven", {kWidth, kExperts});
  RouterInput input{tokens(), kLayout, "moe", ForwardMode::training(), {1, 2}};
  const RoutingPolicy policy{{}, with_default_weights({}, {})};
  const auto error = [&] { return testing::error_text([&] { route_tokens(router, input, policy); }); };
  EXPECT_EQ(error(),
            "the router uneven of the layer moe returned an invalid routing: 59 assignments of 30 tokens, "
            "expected per_token = 2 each; set varying = true if tokens have different numbers of experts");
  router.varying = true;
  EXPECT_EQ(error(), "");
  router.varying = false;
  router.skips = true;
  EXPECT_EQ(error(), "");
  router.skips = false;
  input.context.valid = torch::arange(kTokens) != 0;  // padding has no choices
  EXPECT_EQ(error(), "");
}

}  // namespace sparsight::route_apply_test
