#include <map>

#include <gtest/gtest.h>

#include "sparsight/io/weights.h"
#include "sparsight/models/model_cost.h"
#include "sparsight/models/register_models.h"
#include "sparsight/models/vit.h"

namespace sparsight::vit_cost_test {
namespace {

// The parameters of a real model, by the part that the name starts with.
int64_t count_parameters(const ImageModel& model, const std::string& part) {
  int64_t count = 0;
  for (const auto& [name, tensor] : named_weights(model))
    if (name == part || name.starts_with(part + ".")) count += tensor.numel();
  return count;
}

}  // namespace

// Parameters as timm prints them for vit_{tiny,small,base}_patch16_224; multiply-adds of images of 224x224 as Touvron
// et al. 2021 ("Training data-efficient image transformers", table 5) round them for the same shapes.
TEST(VitCost, AgreesWithThePublishedSizes) {
  const auto size = [](const std::string& name) {
    VitOptions options;
    options.size = name, options.patch = 16;
    return total(Vit(options, {{3, 224, 224, 1000}, default_moe_spec()}).cost({}));
  };
  EXPECT_EQ(size("tiny").parameters, 5717416);
  EXPECT_EQ(size("small").parameters, 22050664);
  EXPECT_EQ(size("base").parameters, 86567656);
  EXPECT_NEAR(static_cast<double>(size("tiny").multiply_adds) / 1e9, 1.3, 0.05);
  EXPECT_NEAR(static_cast<double>(size("small").multiply_adds) / 1e9, 4.6, 0.05);
  EXPECT_NEAR(static_cast<double>(size("base").multiply_adds) / 1e9, 17.6, 0.05);
}

TEST(VitCost, CountsEachPartOfARealModelWithAnMoeLayer) {
  const auto model = models().make("vit", {{"width", 8}, {"depth", 2}, {"heads", 2}, {"patch", 4}}, "model",
                                   ModelContext{{1, 16, 12, 5}, default_moe_spec({1})});
  const std::vector<PartCost> parts = model->cost({});
  int64_t all = 0;
  for (const PartCost& part : parts) EXPECT_EQ(part.cost.parameters, count_parameters(*model, part.part)) << part.part;
  for (const auto& [name, tensor] : named_weights(*model)) all += tensor.numel();
  EXPECT_EQ(total(parts).parameters, all);
  // 13 tokens; each pays for two experts of 2 * 8 * 32 products.
  bool found = false;
  for (const PartCost& part : parts)
    if (part.part == "blocks.1.mlp.experts") {
      found = true;
      EXPECT_EQ(part.cost.multiply_adds, 13 * 2 * 2 * 8 * 32);
    }
  EXPECT_TRUE(found);
}

TEST(VitCost, CountsScalesRegistersAndTheFirstNorm) {
  const Json options{{"width", 8},         {"depth", 2},      {"heads", 2},       {"patch", 4},
                     {"layer_scale", 0.1}, {"reg_tokens", 4}, {"pre_norm", true}, {"no_embed_class", true}};
  const auto model = models().make("vit", options, "model", ModelContext{{1, 16, 12, 5}, default_moe_spec({1})});
  int64_t all = 0;
  std::map<std::string, Cost> costs;
  for (const PartCost& part : model->cost({})) {
    EXPECT_EQ(part.cost.parameters, count_parameters(*model, part.part)) << part.part;
    costs[part.part] = part.cost;
  }
  for (const auto& [name, tensor] : named_weights(*model)) all += tensor.numel();
  EXPECT_EQ(total(model->cost({})).parameters, all);
  // 17 tokens (1 + 4 + 12) of width 8 are scaled; all of them are normalised at 7 operations a number.
  EXPECT_EQ(costs.at("blocks.0.ls1").elementwise, 17 * 8);
  EXPECT_EQ(costs.at("blocks.1.ls2").elementwise, 17 * 8);
  EXPECT_EQ(costs.at("norm_pre").elementwise, 17 * 8 * 7);
  EXPECT_EQ(costs.at("reg_token").parameters, 4 * 8);
  EXPECT_EQ(costs.at("pos_embed").parameters, 12 * 8);
}

// 13 tokens of width 8: the last block has keys and values of all, the rest of one.
TEST(VitCost, WithoutTokensThatTheHeadDoesNotRead) {
  const auto multiply_adds = [](const MoeSpec& moe, const std::string& pool) {
    const auto model = models().make("vit", {{"width", 8}, {"depth", 2}, {"heads", 2}, {"patch", 4}, {"pool", pool}},
                                     "model", ModelContext{{1, 16, 12, 5}, moe});
    return total(model->cost({})).multiply_adds - total(model->cost({.only_read_tokens = true})).multiply_adds;
  };
  // 12 tokens without query and projection (64 products each), 13 scores and weights (8 each), and an MLP of 2 * 8
  // * 32.
  EXPECT_EQ(multiply_adds(default_moe_spec(), "class"), 12 * (2 * 64 + 2 * 13 * 8 + 2 * 8 * 32));
  // Routing reads the attention of all tokens; 12 of them do without their two experts.
  EXPECT_EQ(multiply_adds(default_moe_spec({1}), "class"), 12 * 2 * 2 * 8 * 32);
  EXPECT_EQ(multiply_adds(default_moe_spec(), "mean"), 0);
}

// 4 x 4 images of one channel in 4 patches of 2 x 2: 5 tokens of width 4, two heads, one block with an MLP of 8.
TEST(VitCost, ElementwiseOperationsByHand) {
  VitOptions options;
  options.width = 4, options.depth = 1, options.heads = 2, options.mlp_ratio = 2, options.patch = 2;
  const auto elementwise = [&](const CostOptions& counted = {}) {
    return total(Vit(options, {{1, 4, 4, 3}, default_moe_spec()}).cost(counted)).elementwise;
  };
  // Each token: two norms of 28, biases of 16 + 8 + 4, scaled queries, two residuals and a position of 4, GELU 40.
  const int64_t tokens = 5 * (56 + 28 + 4 + 8 + 4 + 40), softmax = 2 * 25 * 4, patches = 4 * 4;
  EXPECT_EQ(elementwise(), tokens + softmax + patches + 28 + 3);
  EXPECT_EQ(elementwise({cost_convention("flops_elementwise")}), tokens + softmax + patches + 5 * 28 + 3);
  options.pre_logits = true;  // 4 biases and 4 tanh
  EXPECT_EQ(elementwise(), tokens + softmax + patches + 28 + 3 + 8);
  options.pre_logits = false, options.pool = "mean";  // 4 tokens; the mean adds them up
  EXPECT_EQ(elementwise(), tokens / 5 * 4 + 2 * 16 * 4 + patches + 28 + 3 + 16);
}

}  // namespace sparsight::vit_cost_test
