#include "sparsight/analysis/vit_cost.h"

#include <gtest/gtest.h>

#include "sparsight/io/weights.h"
#include "sparsight/models/register_models.h"

namespace sparsight::vit_cost_test {
namespace {

// The parameters of a real model, by the part that the name starts with.
int64_t parameters_of(const ImageModel& model, const std::string& part) {
  int64_t count = 0;
  for (const auto& [name, tensor] : named_weights(model))
    if (name == part || name.starts_with(part + ".")) count += tensor.numel();
  return count;
}

}  // namespace

// Parameters as timm prints them for vit_{tiny,small,base}_patch16_224; multiply-adds of images of 224x224 as Touvron
// et al. 2021 ("Training data-efficient image transformers", table 5) round them for the same shapes.
TEST(VitCost, AgreesWithThePublishedSizes) {
  const auto size = [](int64_t width) { return total(vit_cost({.tokens_width = width, .mlp_hidden = 4 * width})); };
  EXPECT_EQ(size(192).parameters, 5717416);
  EXPECT_EQ(size(384).parameters, 22050664);
  EXPECT_EQ(size(768).parameters, 86567656);
  EXPECT_NEAR(static_cast<double>(size(192).multiply_adds) / 1e9, 1.3, 0.05);
  EXPECT_NEAR(static_cast<double>(size(384).multiply_adds) / 1e9, 4.6, 0.05);
  EXPECT_NEAR(static_cast<double>(size(768).multiply_adds) / 1e9, 17.6, 0.05);
}

TEST(VitCost, CountsEachPartOfARealModelWithAnMoeLayer) {
  const auto model = models().make("vit", {{"width", 8}, {"depth", 2}, {"heads", 2}, {"patch", 4}}, "model",
                                   ModelContext{{1, 16, 12, 5}, default_moe_spec({1})});
  const Cost expert = mlp_cost({.width = 8, .hidden = 32, .bias = true});
  const VitShape shape{.channels = 1,
                       .height = 16,
                       .width = 12,
                       .classes = 5,
                       .tokens_width = 8,
                       .depth = 2,
                       .mlp_hidden = 32,
                       .patch = 4,
                       .moe_blocks = {{1,
                                       {{"blocks.1.mlp.router", on_units(router_cost(8, 8), 13)},
                                        {"blocks.1.mlp.experts", on_units(experts_cost(expert, 8, 2), 13)}}}}};
  const std::vector<PartCost> parts = vit_cost(shape);
  int64_t all = 0;
  for (const PartCost& part : parts) EXPECT_EQ(part.cost.parameters, parameters_of(*model, part.part)) << part.part;
  for (const auto& [name, tensor] : named_weights(*model)) all += tensor.numel();
  EXPECT_EQ(total(parts).parameters, all);
  // 13 tokens; each pays for two experts of 2 * 8 * 32 products.
  for (const PartCost& part : parts)
    if (part.part == "blocks.1.mlp.experts") {
      EXPECT_EQ(part.cost.multiply_adds, 13 * 2 * 2 * 8 * 32);
    }
}

}  // namespace sparsight::vit_cost_test
