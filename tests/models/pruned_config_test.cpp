#include "sparsight/models/pruned_config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/errors.h"

namespace sparsight::pruned_config_test {
namespace {

Json config(Json layer = Json::array()) {
  return {{"moe", {{"blocks", {-2, -1}}, {"experts", 8}, {"layer", std::move(layer)}}}, {"router", {{"k", 2}}}};
}

TEST(PrunedConfig, EqualNumbersBecomeMoeExperts) {
  const Json changed = config_with_experts(config(), {{"blocks.2.mlp", 5}, {"blocks.3.mlp", 5}}, 4);
  EXPECT_EQ(changed["moe"]["experts"], 5);
  EXPECT_TRUE(changed["moe"]["layer"].empty());
  EXPECT_EQ(changed["moe"]["blocks"], Json({-2, -1}));
  EXPECT_EQ(changed["router"], config()["router"]);
}

TEST(PrunedConfig, EqualNumbersReplaceThoseOfEntries) {
  const Json entries = Json::array({{{"blocks", Json::array({-1})}, {"experts", 16}, {"hidden", 7}}});
  const Json changed = config_with_experts(config(entries), {{"blocks.2.mlp", 5}, {"blocks.3.mlp", 5}}, 4);
  EXPECT_EQ(changed["moe"]["layer"][0]["experts"], 5);
  EXPECT_EQ(changed["moe"]["layer"][0]["hidden"], 7);
}

// Block 3 is -1 of four blocks.
TEST(PrunedConfig, DifferentNumbersBecomeEntriesThatKeepTheOtherSettings) {
  const Json entries = Json::array({{{"blocks", Json::array({-1})}, {"experts", 16}, {"router", {{"k", 1}}}}});
  const Json changed = config_with_experts(config(entries), {{"blocks.2.mlp", 5}, {"blocks.3.mlp", 3}}, 4);
  EXPECT_EQ(changed["moe"]["experts"], 5);
  const Json& layers = changed["moe"]["layer"];
  ASSERT_EQ(layers.size(), 2U);
  EXPECT_EQ(layers[0], Json({{"blocks", Json::array({2})}, {"experts", 5}}));
  EXPECT_EQ(layers[1]["blocks"], Json::array({3}));
  EXPECT_EQ(layers[1]["experts"], 3);
  EXPECT_EQ(layers[1]["router"]["k"], 1);
}

TEST(PrunedConfig, RefusesDifferentNumbersOfLayersThatAreNoBlocks) {
  EXPECT_NE(testing::error_text([] {
              config_with_experts(config(), {{"moe", 5}, {"blocks.1.mlp", 3}}, 4);
            }).find("unlike moe;"),
            std::string::npos);
  // Block 4 of a ResNet-18.
  EXPECT_NE(testing::error_text([] {
              config_with_experts(config(), {{"layer3.0.moe", 5}, {"layer4.0.moe", 3}}, 8);
            }).find("unlike layer3.0.moe;"),
            std::string::npos);
  // Blocks 1 and 4 of a ConvNeXt, which has fewer stages than an entry's block.
  const Json entries = Json::array({{{"blocks", Json::array({4})}, {"experts", 8}}});
  EXPECT_NE(testing::error_text([&] {
              config_with_experts(config(entries), {{"stages.0.blocks.1.mlp", 5}, {"stages.1.blocks.2.mlp", 3}}, 2);
            }).find("for layers named blocks.N alone, unlike stages.0.blocks.1.mlp;"),
            std::string::npos);
}

TEST(PrunedConfig, CountsBlocksByTheirPaths) {
  const std::vector<std::string> modules{"blocks", "blocks.0", "blocks.11.mlp", "features.30", "head"};
  EXPECT_EQ(count_blocks("blocks.3.mlp", modules), 12);
  EXPECT_EQ(count_blocks("features.16.moe", modules), 31);
  EXPECT_EQ(count_blocks("moe", modules), 0);
}

}  // namespace
}  // namespace sparsight::pruned_config_test
