// Costs of MoE layers: what is counted for each router, against what it chooses.
#include <cmath>

#include <gtest/gtest.h>

#include "sparsight/core/config.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/nn/init.h"
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

std::vector<PartCost> layer_parts(const Json& settings, const CostOptions& options = {}) {
  return MoeLayer(read_moe_spec(settings), {"moe", kWidth, 32}).cost({1, kTokens, 1, 3, 3}, options);
}

Cost total_cost(const Json& settings, const CostOptions& options = {}) { return total(layer_parts(settings, options)); }

// The rows counted for an image. A hidden unit more is 2 D products more in each row.
int64_t rows_counted(const Json& router) {
  const int64_t wide = total_cost(settings_with(router, "mlp", 2)).multiply_adds;
  return (wide - total_cost(settings_with(router)).multiply_adds) / (2 * kWidth);
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
    EXPECT_EQ(total_cost(settings_with(c.router)).multiply_adds - rows_counted(c.router) * 2 * kWidth, c.products)
        << c.router;
}

// Two shared experts of F = 5 see all ten tokens: 2 * 8 * 5 products each; 2 * 8 * 5 + 5 + 8 parameters.
TEST(MoeCost, CountsSharedExperts) {
  Json settings = settings_with({{"name", "softmax_topk"}});
  const Cost without = total_cost(settings);
  settings["moe"]["shared"] = 2;
  settings["moe"]["shared_hidden"] = 5;
  const Cost with = total_cost(settings);
  EXPECT_EQ(with.multiply_adds - without.multiply_adds, 2 * 10 * 80);
  EXPECT_EQ(with.parameters - without.parameters, 2 * 93);
}

// Rows of 8 numbers are 2 channels of 2x2; with zero padding of 1 a kernel of 2x2 has 3 * 3 positions, with 2 * 4
// products for each of 5 filters. An output map of 5 * 8, or of 5 * 3.
TEST(MoeCost, CountsExpertsThatAreSmallCnns) {
  Json settings = settings_with({{"name", "softmax_topk"}}, "conv", 5);
  settings["experts"].update({{"channels", 2}, {"kernel", 2}, {"padding", 1}});
  const auto one = [&](int64_t outputs = 0) {
    return read_moe_spec(settings).make_kind({1, kWidth, 5, outputs})->cost({1, 1, 1, 1, 1});
  };
  EXPECT_EQ(one().multiply_adds, 9 * 8 * 5 + 5 * 8);
  EXPECT_EQ(one().parameters, 8 * 5 + 5 * 8);
  EXPECT_EQ(one(3).parameters, 8 * 5 + 5 * 3);
  EXPECT_EQ(total_cost(settings).parameters, kWidth * kExperts + kExperts * one().parameters);
  settings["experts"]["bias"] = true;
  EXPECT_EQ(one().parameters, 8 * 5 + 5 + 5 * 8);
  settings["experts"]["output"] = "signs";
  EXPECT_EQ(one().multiply_adds, 9 * 8 * 5);
  settings["experts"]["stride"] = 2;
  EXPECT_EQ(one().multiply_adds, 4 * 8 * 5);
}

// Four experts of 8 x 1 and 1 x 8 numbers with 1 + 8 biases: 25 parameters. Two for each of ten tokens: 20 rows of
// 16 products, and of 9 biases, 5 for GELU, 8 gates; 10 sums of two rows. The router: 8 x 4, and a softmax of 4.
TEST(MoeCost, ALayerByHand) {
  const auto parts = layer_parts(settings_with({{"name", "softmax_topk"}, {"noise", 0}}));
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].part, "moe.router");
  EXPECT_EQ(parts[0].cost.multiply_adds, 10 * 32);
  EXPECT_EQ(parts[0].cost.elementwise, 10 * 4 * 4);
  EXPECT_EQ(parts[0].cost.weight_bytes, 4 * 32);
  EXPECT_EQ(parts[1].part, "moe.experts");
  EXPECT_EQ(parts[1].cost.multiply_adds, 20 * 16);
  EXPECT_EQ(parts[1].cost.elementwise, 20 * (9 + 5 + 8) + 10 * 8);
  EXPECT_EQ(parts[1].cost.parameters, 4 * 25);
  EXPECT_EQ(parts[1].cost.active_parameters, 2 * 25);
  EXPECT_EQ(parts[1].cost.weight_bytes, 4 * 4 * 25);  // the tokens of an image may go to all of them
}

// One decision for all tokens: only the experts that it names are read.
TEST(MoeCost, ARouterOfImagesReadsOnlyItsExperts) {
  const auto parts = layer_parts(settings_with({{"name", "per_image"}, {"k", 2}}));
  EXPECT_EQ(parts[1].cost.active_parameters, 2 * 25);
  EXPECT_EQ(parts[1].cost.weight_bytes, 4 * 2 * 25);
  EXPECT_EQ(parts[1].cost.parameters, 4 * 25);
}

TEST(MoeCost, ASoftRouterReadsEverything) {
  const auto parts = layer_parts(settings_with({{"name", "soft_moe"}}));
  EXPECT_EQ(parts[1].cost.active_parameters, 4 * 25);
  EXPECT_EQ(parts[1].cost.weight_bytes, 4 * 4 * 25);
  EXPECT_EQ(parts[1].cost.elementwise, 4 * (9 + 5));  // no gates: the router's products combine
}

// Groups of 2 images have 20 tokens, 40 assignments and, at a factor of 1.3, room for ceil(13) of them at each of four
// experts: 52 rows, 26 of an image. Without a group the batch is one: 3 images, 4 * ceil(19.5) = 80 rows, 26.67 each.
TEST(MoeCost, PaddedExpertsComputeTheirBuffers) {
  Json settings = settings_with({{"name", "softmax_topk"}, {"noise", 0}});
  settings["capacity"] = {{"factor", 1.3}, {"group", 2}};
  const CostOptions padded{cost_convention("flops_padded"), 3};
  const auto products = [&] { return layer_parts(settings, padded)[1].cost.multiply_adds; };
  EXPECT_EQ(products(), 26 * 16);
  settings["capacity"]["group"] = 0;
  EXPECT_EQ(products(), std::llround(80.0 / 3 * 16));
  EXPECT_EQ(layer_parts(settings)[1].cost.multiply_adds, 20 * 16);
  settings["capacity"]["factor"] = 0;  // no buffers
  EXPECT_EQ(products(), 20 * 16);
  settings["router"] = {{"name", "patch_choice"}, {"patches", 3}};  // which has no capacity
  settings["capacity"]["factor"] = 1.3;
  EXPECT_EQ(products(), 4 * 3 * 16);
}

}  // namespace sparsight::moe_cost_test
