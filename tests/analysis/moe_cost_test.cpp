// Costs of MoE layers: what is counted for each router, against what it chooses.
#include "sparsight/analysis/moe_cost.h"

#include <gtest/gtest.h>

#include "sparsight/core/config.h"
#include "sparsight/nn/init.h"
#include "tests/support/errors.h"
#include "tests/support/random_tensor.h"

namespace sparsight::moe_cost_test {
namespace {

constexpr int64_t kImages = 4, kTokens = 10, kWidth = 8, kExperts = 4;

Json settings_with(const Json& router, const std::string& experts = "mlp", int64_t hidden = 1) {
  return {{"moe", {{"experts", kExperts}, {"hidden", hidden}}},
          {"experts", {{"name", experts}}},
          {"losses", Json::object()},
          {"router", router}};
}

Cost cost_of(const Json& settings) { return total(moe_cost(settings, {"moe", kWidth, 32}, kTokens)); }

// Of an image. A hidden unit more is 2 D products more in each row.
int64_t rows_counted(const Json& router) {
  const int64_t wide = cost_of(settings_with(router, "mlp", 2)).multiply_adds;
  return (wide - cost_of(settings_with(router)).multiply_adds) / (2 * kWidth);
}

int64_t rows_routed(const Json& router) {
  const auto real = read_moe_spec(settings_with(router)).make_router({kWidth, kExperts});
  initialize(*real, 1);
  const at::Tensor tokens = test::random_tensor({kImages * kTokens, kWidth}, 3, torch::kFloat);
  const RouterInput input{tokens, {kImages, kTokens, 1, 3, 3}, "moe", ForwardMode::training(), {1, 2}};
  const Routing routing = real->route(input);
  return routing.soft ? routing.soft->experts * routing.soft->slots : routing.token.size(0) / kImages;
}

}  // namespace

TEST(MoeCost, CountsTheRowsThatEachRouterHandsToExperts) {
  for (const Json& router :
       std::vector<Json>{{{"name", "softmax_topk"}, {"k", 3}},
                         {{"name", "noisy_topk"}},
                         {{"name", "gshard_top2"}, {"second", "all"}},
                         {{"name", "gshard_top2"}, {"second", "none"}},
                         {{"name", "switch_top1"}},
                         {{"name", "cosine"}},
                         {{"name", "sigmoid_bias"}},
                         {{"name", "dense_softmax"}},
                         {{"name", "hash"}},
                         {{"name", "random"}},
                         {{"name", "round_robin"}},
                         {{"name", "expert_choice"}},
                         {{"name", "expert_choice"}, {"experts_per_token", 1.5}},
                         {{"name", "expert_choice"}, {"experts_per_token", 1.3}, {"pool", "image"}},
                         {{"name", "patch_choice"}, {"patches", 7}},
                         {{"name", "balanced_batchwise"}},
                         {{"name", "hierarchical"}},
                         {{"name", "hierarchical"}, {"k_groups", 1}},
                         {{"name", "balanced_hierarchical"}},
                         {{"name", "per_image"}},
                         {{"name", "base"}},
                         {{"name", "sinkhorn"}},
                         {{"name", "soft_moe"}, {"slots", 3}}})
    EXPECT_EQ(rows_counted(router), rows_routed(router)) << router;
}

TEST(MoeCost, CountsTheProductsOfRouters) {
  const struct {
    Json router;
    int64_t products;
  } cases[] = {
      {{{"name", "softmax_topk"}}, 10 * 8 * 4},
      {{{"name", "noisy_topk"}}, 10 * 2 * 8 * 4},
      {{{"name", "noisy_topk"}, {"noise", false}}, 10 * 8 * 4},
      {{{"name", "cosine"}, {"width", 5}}, 10 * (8 * 5 + 5 * 4)},
      {{{"name", "hash"}}, 0},
      {{{"name", "per_image"}}, 8 * 4},
      // the map of two groups, and that of two experts for each group chosen
      {{{"name", "hierarchical"}, {"k_groups", 1}}, 10 * 2 * (8 * 2 + 8 * 2)},
      {{{"name", "balanced_hierarchical"}}, 10 * (8 * 2 + 8 * 2)},
      {{{"name", "soft_moe"}, {"slots", 2}}, 3 * 10 * 8 * (4 * 2)},
  };
  for (const auto& c : cases)
    EXPECT_EQ(cost_of(settings_with(c.router)).multiply_adds - rows_counted(c.router) * 2 * kWidth, c.products)
        << c.router;
}

// Two shared experts of F = 5 see all ten tokens: 2 * 8 * 5 products each; 2 * 8 * 5 + 5 + 8 parameters.
TEST(MoeCost, CountsSharedExperts) {
  Json settings = settings_with({{"name", "softmax_topk"}});
  const Cost without = cost_of(settings);
  settings["moe"]["shared"] = 2;
  settings["moe"]["shared_hidden"] = 5;
  const Cost with = cost_of(settings);
  EXPECT_EQ(with.multiply_adds - without.multiply_adds, 2 * 10 * 80);
  EXPECT_EQ(with.parameters - without.parameters, 2 * 93);
}

// Rows of 8 numbers are 2 channels of 2x2; with a zero around them a kernel of 2x2 fits in 3 * 3 places, with 2 * 4
// products for each of 5 filters. An output map of 5 * 8, or of 5 * 3.
TEST(MoeCost, CountsExpertsThatAreSmallCnns) {
  Json settings = settings_with({{"name", "softmax_topk"}}, "conv", 5);
  settings["experts"].update({{"channels", 2}, {"kernel", 2}, {"padding", 1}});
  const auto one = [&](int64_t outputs = 0) { return expert_cost(settings, {1, kWidth, 5, outputs}); };
  EXPECT_EQ(one().multiply_adds, 9 * 8 * 5 + 5 * 8);
  EXPECT_EQ(one().parameters, 8 * 5 + 5 * 8);
  EXPECT_EQ(one(3).parameters, 8 * 5 + 5 * 3);
  EXPECT_EQ(cost_of(settings).parameters, kWidth * kExperts + kExperts * one().parameters);
  settings["experts"]["bias"] = true;
  EXPECT_EQ(one().parameters, 8 * 5 + 5 + 5 * 8);
  settings["experts"]["output"] = "signs";
  EXPECT_EQ(one().multiply_adds, 9 * 8 * 5);
  settings["experts"]["stride"] = 2;
  EXPECT_EQ(one().multiply_adds, 4 * 8 * 5);
}

TEST(MoeCost, SaysWhatItDoesNotCount) {
  EXPECT_EQ(
      testing::message_of<UsageError>([] {
        cost_of(settings_with({{"name", "softmax_topk"}}, "norm_conv"));
      }),
      "the cost of an MoE layer is counted with experts mlp, swiglu, linear and conv, not with experts norm_conv");
  const std::string message = testing::message_of<UsageError>([] { cost_of(settings_with({{"name", "own"}})); });
  EXPECT_TRUE(message.starts_with("the cost of an MoE layer is counted with the routers softmax_topk, ")) << message;
  EXPECT_TRUE(message.ends_with("; not with router own")) << message;
}

}  // namespace sparsight::moe_cost_test
