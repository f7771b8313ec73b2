#include "sparsight/infer/derived_model.h"

#include <gtest/gtest.h>

#include "sparsight/io/weights.h"
#include "sparsight/models/register_models.h"
#include "tests/support/errors.h"

namespace sparsight::derived_model_test {
namespace {

NamedTensors make_weights(const std::string& model, const Json& options, const ImageShape& image,
                          const MoeSpec& moe = default_moe_spec()) {
  NamedTensors tensors;
  for (const auto& [name, tensor] : named_weights(*models().make(model, options, "model", ModelContext{image, moe})))
    tensors.emplace_back(name, tensor);
  return tensors;
}

std::string refusal(const NamedTensors& tensors) {
  return testing::error_text<UsageError>([&] { derive_model(tensors, "w.pth"); });
}

NamedTensors without(NamedTensors tensors, const std::string& name) {
  std::erase_if(tensors, [&](const auto& entry) { return entry.first == name; });
  return tensors;
}

}  // namespace

// timm's vit_small_patch16 for images of 48 pixels: 3 x 3 patches.
TEST(DerivedModel, VisionTransformersFollowFromNamesAndShapes) {
  const DerivedModel derived =
      derive_model(make_weights("vit", {{"size", "small"}, {"patch", 16}}, {3, 48, 48, 10}), "w.pth");
  EXPECT_EQ(derived.side, 48);
  EXPECT_EQ(derived.channels, 3);
  EXPECT_EQ(derived.settings["width"], 384);
  EXPECT_EQ(derived.settings["depth"], 12);
  EXPECT_EQ(derived.settings["heads"], 6);
  EXPECT_EQ(derived.settings["patch"], 16);
  EXPECT_EQ(derived.settings["mlp_ratio"], 4);
  EXPECT_EQ(derived.settings["pool"], "class");
  EXPECT_EQ(derived.settings["layer_scale"], 0);
  EXPECT_EQ(derived.settings["no_embed_class"], false);
  EXPECT_EQ(derived.pixels.mean.at(0), 0.485);
}

// CLIP's pixels and epsilon, by the norm before its blocks.
TEST(DerivedModel, ANormBeforeTheBlocksIsClips) {
  const DerivedModel derived = derive_model(
      make_weights("vit", {{"width", 128}, {"depth", 1}, {"patch", 8}, {"pre_norm", true}}, {3, 16, 16, 3}), "w.pth");
  EXPECT_EQ(derived.settings["pre_norm"], true);
  EXPECT_EQ(derived.settings["norm_eps"], 1e-5);
  EXPECT_EQ(derived.settings["heads"], 2);  // of 64
  EXPECT_EQ(derived.pixels.mean.at(0), 0.48145466);
}

// 9 positions beside 5 class and register tokens: 3 x 3 patches, as in DINOv2, or 2 x 2 and the prefix.
TEST(DerivedModel, RegistersOfPublishedModelsHaveNoPositions) {
  const Json options{{"width", 64}, {"depth", 1}, {"heads", 1}, {"patch", 4}, {"reg_tokens", 4}};
  Json without_positions = options;
  without_positions["no_embed_class"] = true;
  EXPECT_EQ(derive_model(make_weights("vit", without_positions, {3, 12, 12, 3}), "w").settings["no_embed_class"], true);
  EXPECT_EQ(derive_model(make_weights("vit", options, {3, 16, 16, 3}), "w").settings["no_embed_class"], false);
}

TEST(DerivedModel, NormsOfQueriesTellTheHeads) {
  const Json options{{"width", 64}, {"depth", 1}, {"heads", 4}, {"patch", 4}, {"qk_norm", true}};
  EXPECT_EQ(derive_model(make_weights("vit", options, {3, 8, 8, 3}), "w").settings["heads"], 4);
}

// SigLIP's image tower so400m has 16 heads of 72 numbers, although 64 divides its width.
TEST(DerivedModel, AttentionPoolingIsSigLips) {
  const Json options{{"width", 1152}, {"depth", 1}, {"heads", 16}, {"mlp_ratio", 0.5}, {"patch", 4}, {"pool", "map"}};
  const DerivedModel derived = derive_model(make_weights("vit", options, {3, 8, 8, 3}), "w");
  EXPECT_EQ(derived.settings["pool"], "map");
  EXPECT_EQ(derived.settings["heads"], 16);
  EXPECT_EQ(derived.pixels.mean, (std::vector<double>{0.5, 0.5, 0.5}));
  EXPECT_EQ(derived.pixels.std, (std::vector<double>{0.5, 0.5, 0.5}));
}

TEST(DerivedModel, LeavesHeadsOfUnknownWidthsOpen) {
  const NamedTensors odd = make_weights("vit", {{"width", 72}, {"depth", 1}, {"heads", 3}, {"patch", 4}}, {3, 8, 8, 3});
  EXPECT_FALSE(derive_model(odd, "w").settings.contains("heads"));
}

TEST(DerivedModel, ConvolutionalNetworksFollowFromTheirLayers) {
  const auto resnet = [](const Json& options) {
    return derive_model(make_weights("resnet", options, {3, 32, 32, 4}), "w");
  };
  for (const int64_t depth : {18, 34, 50, 101})
    EXPECT_EQ(resnet({{"depth", depth}, {"base_width", 4}}).settings["depth"], depth);
  const DerivedModel small = resnet({{"depth", 18}, {"base_width", 8}, {"stem", "cifar"}});
  EXPECT_EQ(small.settings["stem"], "cifar");
  EXPECT_EQ(small.settings["base_width"], 8);
  EXPECT_EQ(small.side, 32);
  EXPECT_EQ(resnet({{"depth", 18}, {"base_width", 8}}).side, 224);
  for (const double width : {0.5, 1.0, 1.4})
    EXPECT_EQ(derive_model(make_weights("mobilenet", {{"width", width}}, {3, 32, 32, 4}), "w").settings["width"],
              width);
}

TEST(DerivedModel, RefusesWhatDoesNotFollow) {
  const Json options{{"width", 64}, {"depth", 2}, {"heads", 1}, {"patch", 4}};
  const NamedTensors vit = make_weights("vit", options, {3, 8, 8, 3});
  EXPECT_NE(refusal({{"w", torch::zeros({2})}}).find("this file begins with w; give --config"), std::string::npos);
  EXPECT_NE(refusal(make_weights("vit", options, {3, 8, 8, 3}, default_moe_spec({1}))).find("MoE layer"),
            std::string::npos);
  EXPECT_NE(refusal(make_weights("vit", options, {3, 8, 12, 3})).find("7 positions"), std::string::npos);
  EXPECT_NE(refusal(without(vit, "norm.weight")).find("norm.weight"), std::string::npos);
  EXPECT_NE(refusal(without(vit, "blocks.0.mlp.fc1.weight")).find("it has no blocks.0.mlp.fc1.weight"),
            std::string::npos);
  EXPECT_NE(refusal(without(vit, "pos_embed")).find("it has no pos_embed"), std::string::npos);
  EXPECT_NE(refusal(make_weights("mobilenet", {{"width", 0.9}}, {3, 32, 32, 4})).find("published widths"),
            std::string::npos);
}

}  // namespace sparsight::derived_model_test
