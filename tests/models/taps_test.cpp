// What taps of each model are, by hand: of 4 images of 16 x 16 and 5 classes at the default settings.
#include <gtest/gtest.h>

#include "sparsight/models/register_models.h"
#include "sparsight/nn/init.h"

namespace sparsight::taps_test {
namespace {

using Shapes = std::map<std::string, std::vector<int64_t>>;

// The outputs of all taps, and the "features".
Shapes tap_shapes(const std::string& name, const Json& settings, const std::vector<int64_t>& moe_blocks = {}) {
  auto model = models().make(name, settings, "model", ModelContext{{3, 16, 16, 5}, default_moe_spec(moe_blocks)});
  initialize(*model, 1);
  const ModelOutput out = model->forward({.images = torch::rand({4, 3, 16, 16}), .taps = model->tap_names()});
  Shapes shapes{{"features", out.features.sizes().vec()}};
  for (const auto& [tap, value] : out.taps) shapes[tap] = value.sizes().vec();
  return shapes;
}

}  // namespace

TEST(Taps, Cnn) {
  Shapes expected{{"features", {4, 128}},
                  {"stem_norm", {4, 32, 16, 16}},
                  {"blocks.0", {4, 32, 16, 16}},
                  {"blocks.1", {4, 64, 8, 8}},
                  {"blocks.2", {4, 128, 4, 4}}};
  EXPECT_EQ(tap_shapes("cnn", Json::object()), expected);
  expected["moe"] = {4, 128, 4, 4};
  EXPECT_EQ(tap_shapes("cnn", Json::object(), {0}), expected);
}

TEST(Taps, Mlp) {
  const Shapes expected{{"features", {4, 256}},
                        {"embed", {4, 256}},
                        {"blocks.0", {4, 1, 256}},
                        {"blocks.1", {4, 1, 256}},
                        {"norm", {4, 256}}};
  EXPECT_EQ(tap_shapes("mlp", Json::object()), expected);
  EXPECT_EQ(tap_shapes("mlp", Json::object(), {-1}), expected);
}

// 16 patches of 4 x 4 an image: 64 of them, a number for each class.
TEST(Taps, PatchCnn) {
  EXPECT_EQ(tap_shapes("patch_cnn", Json::object()), (Shapes{{"features", {4, 5}}, {"filters", {64, 5}}}));
  EXPECT_EQ(tap_shapes("patch_cnn", Json::object(), {0}), (Shapes{{"features", {4, 5}}, {"moe", {64, 5}}}));
}

TEST(Taps, WideResnet) {
  const Shapes expected{{"features", {4, 64}},         {"stem", {4, 16, 16, 16}},     {"groups.0.0", {4, 16, 16, 16}},
                        {"groups.1.0", {4, 32, 8, 8}}, {"groups.2.0", {4, 64, 4, 4}}, {"norm", {4, 64, 4, 4}}};
  EXPECT_EQ(tap_shapes("wide_resnet", {{"widen", 1}}), expected);
  EXPECT_EQ(tap_shapes("wide_resnet", {{"widen", 1}}, {0}), expected);
}

// 2 * 12 whitening filters; then each group halves the map.
TEST(Taps, WhitenedCnn) {
  Shapes expected{{"features", {4, 256}},
                  {"whiten", {4, 24, 16, 16}},
                  {"groups.0", {4, 64, 8, 8}},
                  {"groups.1", {4, 256, 4, 4}},
                  {"groups.2", {4, 256, 2, 2}}};
  EXPECT_EQ(tap_shapes("whitened_cnn", Json::object()), expected);
  expected["moe"] = {4, 256, 2, 2};
  EXPECT_EQ(tap_shapes("whitened_cnn", Json::object(), {0}), expected);
}

// 16 x 16 to 8 x 8 in the stem's convolution, and 4 x 4 in its pool.
TEST(Taps, Resnet) {
  Shapes expected{{"features", {4, 64}},       {"bn1", {4, 8, 8, 8}},       {"layer1.0", {4, 8, 4, 4}},
                  {"layer1.1", {4, 8, 4, 4}},  {"layer2.0", {4, 16, 2, 2}}, {"layer2.1", {4, 16, 2, 2}},
                  {"layer3.0", {4, 32, 1, 1}}, {"layer3.1", {4, 32, 1, 1}}, {"layer4.0", {4, 64, 1, 1}},
                  {"layer4.1", {4, 64, 1, 1}}};
  EXPECT_EQ(tap_shapes("resnet", {{"base_width", 8}}), expected);
  expected["moe"] = {4, 64, 1, 1};
  EXPECT_EQ(tap_shapes("resnet", {{"base_width", 8}}, {-1}), expected);
}

// 16 x 16 to 4 x 4 in the stem.
TEST(Taps, ConvNext) {
  const Shapes expected{{"features", {4, 128}},
                        {"stem", {4, 32, 4, 4}},
                        {"stages.0.blocks.0", {4, 32, 4, 4}},
                        {"stages.1.blocks.0", {4, 64, 2, 2}},
                        {"stages.2.blocks.0", {4, 128, 1, 1}},
                        {"stages.2.blocks.1", {4, 128, 1, 1}},
                        {"head.norm", {4, 128}}};
  EXPECT_EQ(tap_shapes("convnext", Json::object()), expected);
  EXPECT_EQ(tap_shapes("convnext", Json::object(), {-1}), expected);
}

TEST(Taps, MnistCnn) {
  const Shapes expected{{"features", {4, 128}},
                        {"bn0", {4, 64, 16, 16}},
                        {"bn1", {4, 128, 8, 8}},
                        {"bn2", {4, 128, 8, 8}},
                        {"bn3", {4, 128, 8, 8}}};
  EXPECT_EQ(tap_shapes("mnist_cnn", Json::object()), expected);
}

}  // namespace sparsight::taps_test
