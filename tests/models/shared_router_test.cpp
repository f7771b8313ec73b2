#include "sparsight/models/shared_router.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/models/register_models.h"
#include "sparsight/nn/init.h"
#include "tests/support/errors.h"
#include "tests/support/random_tensor.h"

namespace sparsight::shared_router_test {
namespace {

// Mobile V-MoE: per-image routing in the last `layers` of `depth` blocks.
Json make_config(const std::string& scope, std::vector<int64_t> blocks, const std::string& router = "per_image") {
  return {{"moe", {{"blocks", blocks}, {"experts", 10}}},
          {"experts", {{"name", "mlp"}}},
          {"capacity", Json::object()},
          {"losses", Json::object()},
          {"router", {{"name", router}, {"scope", scope}}}};
}

int64_t count_parameters(const torch::nn::Module& module) {
  int64_t count = 0;
  for (const at::Tensor& p : module.parameters()) count += p.numel();
  return count;
}

std::shared_ptr<ImageModel> small_vit(const Json& config, uint64_t seed = 1) {
  auto model = models().make("vit", {{"width", 16}, {"depth", 4}, {"heads", 2}, {"patch", 4}}, "model",
                             ModelContext{{1, 8, 8, 3}, read_moe_spec(config)});
  initialize(*model, seed);
  const torch::NoGradGuard no_grad;
  for (auto& p : model->named_parameters())
    p.value().add_(test::random_tensor(p.value().sizes(), 7 + seed, torch::kFloat) * 0.1);
  return model;
}

at::Tensor images() { return test::random_tensor({5, 1, 8, 8}, 3, torch::kFloat); }

}  // namespace

// DeiT-Ti/16 with E = 10 and L = 2: one router is 192 * 10 weights fewer than two.
TEST(SharedRouter, M3_ParametersOfDeitTinyWithOneRouterAndWithTwo) {
  for (const auto& [scope, expected] : {std::pair{"model", int64_t{11045032}}, {"layer", int64_t{11046952}}}) {
    const auto model = models().make("vit", {{"size", "tiny"}, {"patch", 16}}, "model",
                                     ModelContext{{3, 224, 224, 1000}, read_moe_spec(make_config(scope, {-2, -1}))});
    EXPECT_EQ(count_parameters(*model), expected) << scope;
  }
}

// One decision for all layers, which editing what follows the router does not change.
TEST(SharedRouter, M10_DecidesOncePerImageForAllLayers) {
  const auto model = small_vit(make_config("model", {2, 3}));
  const ModelOutput before = model->forward({images(), ForwardMode::training(), {1, 2}});
  ASSERT_EQ(before.routings.size(), 1u);
  EXPECT_EQ(before.routings[0].layer, "router");
  EXPECT_NE(model->named_modules().find("router"), nullptr);
  // The layers train the router through its gates.
  before.logits.square().sum().backward();
  EXPECT_GT(model->named_parameters()["router.weight"].grad().abs().max().item<double>(), 0);
  {
    const torch::NoGradGuard no_grad;
    for (auto& p : model->named_parameters())
      if (p.key().starts_with("blocks.2") || p.key().starts_with("blocks.3")) p.value().mul_(1.5);
  }
  const ModelOutput after = model->forward({images(), ForwardMode::training(), {1, 2}});
  EXPECT_TRUE(torch::equal(after.routings[0].expert, before.routings[0].expert));
  EXPECT_TRUE(torch::equal(after.routings[0].gate, before.routings[0].gate));
  EXPECT_FALSE(torch::equal(after.logits, before.logits));
}

// The layers apply the model's decision: the same as handing it to each of them from outside.
TEST(SharedRouter, IsARoutingFromOutsideForEveryLayer) {
  const auto shared = small_vit(make_config("model", {2, 3})), each = small_vit(make_config("layer", {2, 3}));
  {
    const torch::NoGradGuard no_grad;
    for (const auto& p : shared->named_parameters())
      if (p.key() != "router.weight") each->named_parameters()[p.key()].copy_(p.value());
  }
  const ModelOutput wanted = shared->forward({images()});
  ModelInput input{images()};
  input.routings = {{"blocks.2.mlp", wanted.routings[0]}, {"blocks.3.mlp", wanted.routings[0]}};
  const ModelOutput got = each->forward(input);
  EXPECT_TRUE(torch::equal(got.logits, wanted.logits));
  EXPECT_FALSE(torch::equal(each->forward({images()}).logits, wanted.logits));
  ASSERT_EQ(got.routings.size(), 2u);  // the routings that were used
  EXPECT_TRUE(torch::equal(got.routings[1].expert, wanted.routings[0].expert));
}

TEST(SharedRouter, ReplaysADecisionOnOtherPixels) {
  for (const char* scope : {"model", "layer"}) {
    const auto model = small_vit(make_config(scope, {1, 3}, "softmax_topk"));
    const ModelOutput first = model->forward({images()});
    ModelInput changed{images() + 0.7};
    ASSERT_FALSE(torch::equal(model->forward(changed).routings[0].expert, first.routings[0].expert));
    for (const Routing& routing : first.routings) changed.routings[routing.layer] = routing;
    const ModelOutput replayed = model->forward(changed);
    for (size_t i = 0; i < first.routings.size(); ++i)
      EXPECT_TRUE(torch::equal(replayed.routings[i].expert, first.routings[i].expert)) << scope;
    EXPECT_FALSE(torch::equal(replayed.logits, first.logits));
  }
}

TEST(SharedRouter, ItsLossesCountOnceAndItLearnsFromItsRoutings) {
  const auto model = small_vit(make_config("model", {1, 2, 3}, "softmax_topk"));
  EXPECT_EQ(model->forward({images(), ForwardMode::training(), {1, 2}}).losses.size(), 2u);
  const auto biased = small_vit(make_config("model", {1, 2, 3}, "sigmoid_bias"));
  EXPECT_TRUE(needs_post_step_update(*biased));
  const ModelOutput out = biased->forward({images(), ForwardMode::training(), {1, 2}});
  const at::Tensor before = biased->named_buffers()["router.bias"].clone();
  post_step_update(*biased, out.routings);
  EXPECT_FALSE(torch::equal(biased->named_buffers()["router.bias"], before));
}

// A router of images decides for the model unless told otherwise; others decide for their layer. Files from before
// "auto" say "layer".
TEST(SharedRouter, TheScopeIsWhatTheRouterDeclaresUnlessItIsSet) {
  const auto layers = [](const std::string& scope, const std::string& router) {
    std::vector<std::string> names;
    for (const Routing& routing : small_vit(make_config(scope, {2, 3}, router))->forward({images()}).routings)
      names.push_back(routing.layer);
    return names;
  };
  const std::vector<std::string> one{"router"}, each{"blocks.2.mlp", "blocks.3.mlp"};
  EXPECT_EQ(layers("auto", "per_image"), one);
  EXPECT_EQ(layers("model", "per_image"), one);
  EXPECT_EQ(layers("layer", "per_image"), each);
  EXPECT_EQ(layers("auto", "softmax_topk"), each);
  EXPECT_EQ(layers("model", "softmax_topk"), one);
  Json unset = make_config("auto", {2, 3});
  unset["router"].erase("scope");
  EXPECT_TRUE(read_moe_spec(unset).shares_router());
}

TEST(SharedRouter, LayersWithSettingsOfTheirOwnKeepTheScopeOfAll) {
  const auto with_layer = [](const std::string& router, const Json& layer) {
    Json config = make_config("auto", {2}, router);
    config["moe"]["layer"] = Json::array({layer});
    return config;
  };
  const Json hidden{{"blocks", {3}}, {"hidden", 24}}, by_image{{"blocks", {3}}, {"router", {{"name", "per_image"}}}},
      wider{{"blocks", {3}}, {"experts", 5}};
  EXPECT_EQ(small_vit(with_layer("per_image", hidden))->forward({images()}).routings.size(), 1u);
  const ModelOutput mixed = small_vit(with_layer("softmax_topk", by_image))->forward({images()});
  ASSERT_EQ(mixed.routings.size(), 2u);
  EXPECT_EQ(mixed.routings[1].layer, "blocks.3.mlp");
  EXPECT_NE(testing::error_text<UsageError>([&] {
              small_vit(with_layer("per_image", by_image));
            }).find("set router.scope = \"layer\" for a router in each layer"),
            std::string::npos);
  EXPECT_NE(testing::error_text<UsageError>([&] {
              small_vit(with_layer("per_image", wider));
            }).find("same number of experts; got 10 and 5"),
            std::string::npos);
}

// Where no routing can be handed over, the layer has the router: one MoE layer by itself.
TEST(SharedRouter, ALayerByItselfHasItsRouter) {
  EXPECT_NE(MoeLayer(read_moe_spec(make_config("auto", {0})), {"moe", 8, 16}).own_router(), nullptr);
  EXPECT_THROW(MoeLayer(read_moe_spec(make_config("model", {0})), {"moe", 8, 16}), UsageError);
}

TEST(SharedRouter, IsForModelsWithBlocks) {
  EXPECT_NE(testing::error_text<UsageError>([] {
              models().make("mnist_cnn", Json::object(), "model",
                            ModelContext{{1, 8, 8, 3}, read_moe_spec(make_config("model", {0}, "softmax_topk"))});
            }).find("[router] scope = \"model\" is for models with blocks"),
            std::string::npos);
  const auto mlp =
      models().make("mlp", {{"width", 16}, {"depth", 3}}, "model",
                    ModelContext{{1, 8, 8, 3}, read_moe_spec(make_config("model", {1, 2}, "softmax_topk"))});
  initialize(*mlp, 1);
  EXPECT_EQ(mlp->forward({images()}).routings.size(), 1u);
  EXPECT_NE(mlp->named_parameters().find("router.weight"), nullptr);
}

}  // namespace sparsight::shared_router_test
