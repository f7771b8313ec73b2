#include "sparsight/analysis/touched_weights.h"

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "sparsight/analysis/distinct_experts.h"
#include "sparsight/analysis/routing_accumulator.h"
#include "sparsight/core/config.h"
#include "sparsight/core/random.h"
#include "sparsight/models/make_model.h"
#include "sparsight/nn/init.h"
#include "sparsight/nn/parameter_memory.h"
#include "sparsight/train/run_config.h"
#include "tests/analysis/routing_fixture.h"

namespace sparsight::touched_weights_test {
namespace {

using testing::hand_made_routing;
using testing::to_tensor;

constexpr ImageShape kImagenet{3, 224, 224, 1000}, kSmall{1, 8, 8, 6};

std::shared_ptr<ImageModel> build_model(const std::vector<std::string>& settings, const ImageShape& image) {
  Config config = Config::from_text("", "");
  for (const std::string& setting : settings) config.set(setting);
  return make_model(resolve(config, config_sections()), image);
}

// Ten experts in the last two blocks, one router for both.
std::vector<std::string> mobile(const std::string& size, int64_t patch, int64_t k) {
  return {"model.name=vit",      "model.size=" + size, cat("model.patch=", patch),
          "moe.blocks=[-2, -1]", "moe.experts=10",     "router.name=per_image",
          "router.scope=model",  "router.norm=none",   cat("router.k=", k)};
}

ModelOutput make_output(std::vector<Routing> routings) {
  ModelOutput output;
  output.routings = std::move(routings);
  return output;
}

// One image that goes to the experts 0 .. k-1.
Routing per_image(int64_t k) {
  Routing routing;
  routing.layer = "router";
  routing.tokens = 1;
  routing.experts = 10;
  routing.token = at::zeros({k}, at::kLong);
  routing.expert = at::arange(k);
  routing.kept = at::ones({k}, at::kBool);
  return routing;
}

}  // namespace

// Image 0 was computed by experts 0 0 0 1, image 1 by 2 2 0 (its last token was dropped).
TEST(TouchedWeights, DistinctExpertsByHand) {
  EXPECT_TRUE(at::equal(distinct_experts(hand_made_routing(), 2), to_tensor<int64_t>({2, 2}, at::kLong)));
  Routing dropped = hand_made_routing();
  dropped.kept[3] = false;  // expert 1 of image 0
  EXPECT_TRUE(at::equal(distinct_experts(dropped, 2), to_tensor<int64_t>({1, 2}, at::kLong)));
  RoutingAccumulator sums;
  sums.add({dropped}, to_tensor<int64_t>({1, 0}, at::kLong), 2);
  EXPECT_EQ(sums.layers()[0]["experts_per_image"], 1.5);
  EXPECT_EQ(sums.layers()[0]["experts_per_image_max"], 2);
  // Load 4, 1, 3 of 8: -(1/2 ln 1/2 + 1/8 ln 1/8 + 3/8 ln 3/8)
  EXPECT_NEAR(sums.layers()[0]["usage_entropy"].get<double>(), 0.974315, 1e-6);
}

// 100 parameters outside of experts, 10 of an expert: 120 for both images; with one expert less 110 and 120.
TEST(TouchedWeights, M42_MeanAndMaximumOverImages) {
  TouchedWeights touched({100, {{"blocks.1.mlp", 10}}});
  EXPECT_TRUE(touched.json().is_null());
  Routing fewer = hand_made_routing();
  fewer.kept[3] = false;
  touched.add(make_output({fewer}), 2);
  EXPECT_EQ(touched.json(), (Json{{"parameters", 115.}, {"parameters_max", 120}, {"bytes", 460.}, {"bytes_max", 480}}));
  touched.add(make_output({hand_made_routing()}), 2);  // 110, 120, 120, 120
  EXPECT_EQ(touched.json()["parameters"], 117.5);
  TouchedWeights dense({100, {}});
  dense.add(make_output({}), 2);
  EXPECT_TRUE(dense.json().is_null());
}

// A soft layer of three experts touches all of them: 100 + 3 * 10.
TEST(TouchedWeights, SoftLayersTouchEveryExpert) {
  TouchedWeights touched({100, {{"soft", 10}}});
  ModelOutput output;
  SoftRouting routing;
  routing.layer = "soft";
  routing.experts = 3;
  output.soft_routings.push_back(routing);
  touched.add(output, 2);
  EXPECT_EQ(touched.json()["parameters"], 130.);
}

// Specification 6.4: DeiT-Ti/16 touches 5,719,336 parameters with k = 1, 6,311,080 with 2, 6,902,824 with 3 and
// 7,494,568 with 4, and 11,045,032 with all ten experts: dense + L (k - 1) m + D E with m = 295,872.
TEST(TouchedWeights, M42_WeightsTouchedPerImageOfDeitTiny) {
  const MetaParameters meta;
  const ExpertWeights weights = expert_weights(*build_model(mobile("tiny", 16, 1), kImagenet));
  EXPECT_EQ(weights.other, 5717416 - 2 * 295872 + 192 * 10);
  EXPECT_EQ(weights.of_expert, (std::map<std::string, int64_t>{{"router", 2 * 295872}}));
  const std::map<int64_t, int64_t> parameters{{1, 5719336}, {2, 6311080}, {3, 6902824}, {4, 7494568}, {10, 11045032}};
  for (const auto& [k, expected] : parameters) {
    TouchedWeights touched(weights);
    touched.add(make_output({per_image(k)}), 1);
    EXPECT_EQ(touched.json()["parameters"], static_cast<double>(expected)) << k;
    EXPECT_EQ(touched.json()["bytes_max"], 4 * expected) << k;
  }
}

// Two routers, as of the model that routes each token: 11,046,952 for an image that reaches all experts in both.
TEST(TouchedWeights, M42_PerTokenRoutingTouchesAllExpertsOfBothLayers) {
  const MetaParameters meta;
  const ExpertWeights weights = expert_weights(*build_model(
      {"model.name=vit", "model.size=tiny", "model.patch=16", "moe.blocks=[-2, -1]", "moe.experts=10"}, kImagenet));
  ASSERT_EQ(weights.of_expert.size(), 2u);
  Routing first = per_image(10), second = per_image(10);
  first.layer = "blocks.10.mlp", second.layer = "blocks.11.mlp";
  TouchedWeights touched(weights);
  touched.add(make_output({first, second}), 1);
  EXPECT_EQ(touched.json()["parameters_max"], 11046952);
}

// Specification 6.4, patch 32 and k = 1: active parameters of three of the sizes.
TEST(TouchedWeights, M42_ActiveParametersOfTheSizes) {
  const MetaParameters meta;
  const std::map<std::string, int64_t> active{{"12x384", 22882792}, {"9x192", 4798888}, {"6x64", 565608}};
  for (const auto& [size, expected] : active) {
    TouchedWeights touched(expert_weights(*build_model(mobile(size, 32, 1), kImagenet)));
    touched.add(make_output({per_image(1)}), 1);
    EXPECT_EQ(touched.json()["parameters_max"], expected) << size;
  }
}

// Images of a per-image model have exactly k experts, those of one that routes tokens more.
TEST(TouchedWeights, M43_DistinctExpertsAreExactlyKForPerImageModels) {
  const std::vector<std::string> vit{"model.name=vit", "model.size=custom", "model.width=16",      "model.depth=2",
                                     "model.heads=2",  "model.patch=2",     "moe.blocks=[-2, -1]", "moe.experts=6"};
  const at::Tensor images = torch::rand({5, 1, 8, 8});
  const auto layers = [&](const std::vector<std::string>& router) {
    std::vector<std::string> settings = vit;
    settings.insert(settings.end(), router.begin(), router.end());
    const auto model = build_model(settings, kSmall);
    initialize(*model, 3);
    const torch::NoGradGuard no_grad;
    RoutingAccumulator sums;
    sums.add(model->forward({.images = images}).routings, at::zeros({5}, at::kLong), 6);
    return sums.layers();
  };
  for (const int64_t k : {1, 2, 6})
    for (const Json& layer : layers({"router.name=per_image", cat("router.k=", k)})) {
      EXPECT_EQ(layer["experts_per_image"], static_cast<double>(k));
      EXPECT_EQ(layer["experts_per_image_max"], k);
    }
  for (const Json& layer : layers({"router.name=softmax_topk", "router.k=2"})) {
    EXPECT_GT(layer["experts_per_image"].get<double>(), 2);
    EXPECT_GE(layer["experts_per_image_max"].get<double>(), layer["experts_per_image"].get<double>());
    EXPECT_LE(layer["experts_per_image_max"].get<int64_t>(), 6);
  }
}

}  // namespace sparsight::touched_weights_test
