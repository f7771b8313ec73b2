// [[moe.layer]]: layers that differ, and tokens with different numbers of experts.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/models/register_models.h"
#include "sparsight/moe/capacity.h"
#include "sparsight/moe/finish_routing.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/moe/routing_stats.h"
#include "sparsight/nn/init.h"
#include "tests/support/errors.h"
#include "tests/support/random_tensor.h"

namespace sparsight::layer_overrides_test {
namespace {

Json config_with(const Json& layers, const std::string& scope = "layer") {
  return {{"moe", {{"blocks", {1}}, {"experts", 4}, {"layer", layers}}},
          {"experts", {{"name", "mlp"}}},
          {"capacity", {{"factor", 1.5}}},
          {"losses", {{"router_z", 0.5}}},
          {"router", {{"name", "softmax_topk"}, {"k", 2}, {"noise", 0.5}, {"scope", scope}}}};
}

std::shared_ptr<ImageModel> make_vit(const Json& config) {
  auto model = models().make("vit", {{"width", 16}, {"depth", 4}, {"heads", 2}, {"patch", 4}}, "model",
                             ModelContext{{1, 8, 8, 3}, read_moe_spec(config)});
  initialize(*model, 1);
  return model;
}

std::string refusal(const Json& layers, const std::string& scope = "layer") {
  return testing::error_text<UsageError>([&] { make_vit(config_with(layers, scope)); });
}

}  // namespace

TEST(LayerOverrides, BlocksHaveTheirOwnExpertsRouterAndCapacity) {
  const auto model = make_vit(config_with({{{"blocks", {2}}, {"experts", 6}, {"router", {{"k", 3}}}},
                                           {{"blocks", {-1}},
                                            {"router", {{"name", "switch_top1"}}},
                                            {"expert", {{"name", "swiglu"}}},
                                            {"capacity", {{"factor", 1}}},
                                            {"losses", {{"router_z", 0}}}}}));
  const ModelOutput out =
      model->forward({test::random_tensor({5, 1, 8, 8}, 3, torch::kFloat), ForwardMode::training(), {1, 2}});
  ASSERT_EQ(out.routings.size(), 3u);
  const auto& [first, second, third] = std::tie(out.routings[0], out.routings[1], out.routings[2]);
  EXPECT_EQ(first.layer, "blocks.1.mlp");
  EXPECT_EQ(first.experts, 4);
  EXPECT_EQ(first.per_token, 2);
  EXPECT_EQ(second.experts, 6);
  EXPECT_EQ(second.per_token, 3);
  EXPECT_EQ(third.experts, 4);
  EXPECT_EQ(third.per_token, 1);
  // 25 tokens: 1.5 * 2 * 25 / 4 = 18.75, 1.5 * 3 * 25 / 6 = 18.75, 25 / 4 = 6.25.
  EXPECT_EQ(first.capacity.item<int64_t>(), 19);
  EXPECT_EQ(second.capacity.item<int64_t>(), 19);
  EXPECT_EQ(third.capacity.item<int64_t>(), 7);
  EXPECT_EQ(model->named_parameters()["blocks.3.mlp.experts.w1"].size(2), 2 * 64);  // swiglu
  int z_losses = 0;
  for (const NamedLoss& loss : out.losses) z_losses += loss.name == "router_z";
  EXPECT_EQ(z_losses, 2);
}

TEST(LayerOverrides, MistakesAreOneLine) {
  EXPECT_NE(refusal({{{"experts", 6}}}).find("needs blocks"), std::string::npos);
  EXPECT_NE(refusal({{{"blocks", {7}}}}).find("[[moe.layer]] blocks: there is no block 7"), std::string::npos);
  EXPECT_NE(refusal({{{"blocks", {2}}}, {{"blocks", {-2}}}}).find("has block 2 twice"), std::string::npos);
  EXPECT_NE(refusal({{{"blocks", {2}}, {"expertss", 6}}}).find("did you mean"), std::string::npos);
  EXPECT_NE(refusal({{{"blocks", {2}}, {"router", {{"name", "softmax_topkk"}}}}}).find("softmax_topk"),
            std::string::npos);
  EXPECT_NE(refusal({{{"blocks", {2}}, {"router", 3}}}).find("must be a table"), std::string::npos);
  EXPECT_NE(refusal({{{"blocks", {2}}, {"router", {{"scope", "model"}}}}}).find("scope applies to all MoE layers"),
            std::string::npos);
  EXPECT_NE(refusal({{{"blocks", {2}}, {"capacity", {{"factor", 1}}}}}, "model")
                .find("so capacity cannot differ between them"),
            std::string::npos);
  EXPECT_NE(refusal({{{"blocks", {2}}, {"experts", 6}}}, "model").find("same number of experts"), std::string::npos);
}

// Three tokens with 3, 1 and 0 experts: 4 assignments over 2 experts at a factor of 1 leave room for 2 each, where
// 3 choices for each of the tokens would leave it for 5.
TEST(VaryingChoices, CapacitySharesOutWhatWasChosenAndStatisticsCountIt) {
  Routing r;
  r.tokens = 4;
  r.experts = 3;
  r.per_token = 3;
  r.varying = true;
  r.token = torch::tensor({0, 0, 0, 1, 3, 3}, torch::kLong);
  r.expert = torch::tensor({0, 1, 2, 0, 0, 1}, torch::kLong);
  r.rank = torch::tensor({0, 1, 2, 0, 0, 1}, torch::kLong);
  r.gate = torch::tensor({.5, .3, .2, 1., .6, .4});
  r.valid = torch::ones({4}, torch::kBool);
  finish_routing(r);
  const RoutingStats stats = routing_stats(r);
  EXPECT_DOUBLE_EQ(stats.experts_per_token, 6.0 / 4);
  EXPECT_EQ(stats.tokens_with, (std::vector<double>{1, 1, 1, 1}));  // tokens with 0, 1, 2 and 3 experts

  CapacityOptions options;
  apply_capacity(r, options, 1.0);
  EXPECT_EQ(r.capacity.item<int64_t>(), 2);                                                 // 6 / 3
  EXPECT_TRUE(torch::equal(r.kept, torch::tensor({true, true, true, true, false, true})));  // the third for expert 0
  Routing fixed = r;
  fixed.varying = false;
  fixed.kept = at::Tensor();
  apply_capacity(fixed, options, 1.0);
  EXPECT_EQ(fixed.capacity.item<int64_t>(), 4);  // 3 * 4 / 3
  EXPECT_TRUE(fixed.kept.all().item<bool>());
}

}  // namespace sparsight::layer_overrides_test
