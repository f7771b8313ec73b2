#include "sparsight/models/adapt_weights.h"

#include <gtest/gtest.h>

#include "sparsight/models/register_models.h"
#include "sparsight/nn/init.h"
#include "tests/support/errors.h"

namespace sparsight::adapt_weights_test {
namespace {

std::shared_ptr<ImageModel> small_vit(int64_t channels, int64_t side, int64_t classes) {
  auto model = models().make("vit", {{"width", 8}, {"depth", 1}, {"heads", 2}, {"patch", 4}}, "model",
                             ModelContext{{channels, side, side, classes}, default_moe_spec()});
  initialize(*model, 1);
  return model;
}

LoadReport load_into(ImageModel& target, const ImageModel& source) {
  NamedTensors tensors;
  for (const auto& [name, tensor] : named_weights(source)) tensors.emplace_back(name, tensor.detach().clone());
  LoadOptions options;
  options.adapt = weight_adapter(target);
  return load_weights(target, tensors, options);
}

TEST(AdaptWeights, FitsAnotherGridAndAnotherNumberOfChannels) {
  const auto source = small_vit(3, 16, 10), target = small_vit(1, 24, 5);
  const LoadReport report = load_into(*target, *source);
  EXPECT_EQ(report.adapted.size(), 2u) << describe(report);  // pos_embed, patch_embed.proj.weight
  EXPECT_EQ(report.fresh.size(), 2u) << describe(report);    // head.weight, head.bias
  // The class token's entry is unchanged.
  EXPECT_TRUE(source->named_parameters()["pos_embed"].slice(1, 0, 1).equal(
      target->named_parameters()["pos_embed"].slice(1, 0, 1)));
}

// DeiT-III's position embedding is of the patches alone.
TEST(AdaptWeights, ResamplesPositionsWithoutAClassToken) {
  const auto vit = [](int64_t side) {
    const Json options{{"width", 8}, {"depth", 1}, {"heads", 2}, {"patch", 4}, {"no_embed_class", true}};
    auto model = models().make("vit", options, "model", ModelContext{{3, side, side, 5}, default_moe_spec()});
    initialize(*model, 1);
    return model;
  };
  const auto source = vit(16), target = vit(24);
  const LoadReport report = load_into(*target, *source);
  EXPECT_EQ(report.adapted.size(), 1u) << describe(report);
  EXPECT_EQ(target->named_parameters()["pos_embed"].size(1), 36);
}

// With pos_resampling = linear the corners of the grid stay as they are; bicubic resampling changes them.
TEST(AdaptWeights, A10_ResamplesPositionsAsTheModelSays) {
  const auto vit = [](int64_t side, const char* resampling) {
    const Json options{{"width", 8}, {"depth", 1}, {"heads", 2}, {"patch", 4}, {"pos_resampling", resampling}};
    auto model = models().make("vit", options, "model", ModelContext{{3, side, side, 5}, default_moe_spec()});
    initialize(*model, 1);
    return model;
  };
  const auto last_patch = [](const ImageModel& model) {
    const at::Tensor positions = model.named_parameters()["pos_embed"];
    return positions.select(1, positions.size(1) - 1);
  };
  const auto source = vit(16, "bicubic"), linear = vit(24, "linear"), bicubic = vit(24, "bicubic");
  load_into(*linear, *source);
  load_into(*bicubic, *source);
  EXPECT_TRUE(torch::allclose(last_patch(*linear), last_patch(*source), 0, 1e-6));
  EXPECT_FALSE(torch::allclose(last_patch(*bicubic), last_patch(*source), 0, 1e-4));
}

TEST(AdaptWeights, AGreyImageGivesTheSameLogitsAfterSummingChannels) {
  const auto colour = small_vit(3, 16, 10), grey = small_vit(1, 16, 10);
  load_into(*grey, *colour);
  const at::Tensor image = torch::rand({2, 1, 16, 16});
  EXPECT_TRUE(
      colour->forward({image.expand({2, 3, 16, 16})}).logits.allclose(grey->forward({image}).logits, 1e-5, 1e-6));
}

TEST(AdaptWeights, AColourModelSpreadsTheWeightsOfAGreyOne) {
  const auto colour = small_vit(3, 16, 10), grey = small_vit(1, 16, 10);
  load_into(*colour, *grey);
  const at::Tensor image = torch::rand({2, 1, 16, 16});
  EXPECT_TRUE(
      colour->forward({image.expand({2, 3, 16, 16})}).logits.allclose(grey->forward({image}).logits, 1e-5, 1e-6));
}

// A sum over no channels would be zeros.
TEST(AdaptWeights, WeightsOfNoChannelsDoNotFit) {
  const auto grey = small_vit(1, 16, 10);
  NamedTensors tensors;
  for (const auto& [name, tensor] : named_weights(*grey))
    tensors.emplace_back(name, name == "patch_embed.proj.weight" ? torch::zeros({8, 0, 4, 4}) : tensor.clone());
  LoadOptions options;
  options.strict = true;
  options.adapt = weight_adapter(*grey);
  EXPECT_NE(testing::error_text([&] { load_weights(*grey, tensors, options); }).find("patch_embed.proj.weight"),
            std::string::npos);
}

}  // namespace
}  // namespace sparsight::adapt_weights_test
