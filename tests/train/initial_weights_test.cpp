#include "sparsight/train/initial_weights.h"

#include <gtest/gtest.h>

#include "sparsight/core/config.h"
#include "sparsight/io/safetensors.h"
#include "sparsight/io/weights.h"
#include "sparsight/models/make_model.h"
#include "sparsight/nn/init.h"
#include "sparsight/train/run_config.h"
#include "tests/support/errors.h"
#include "tests/support/program.h"

namespace sparsight::initial_weights_test {
namespace {

std::shared_ptr<ImageModel> small_model(const PixelStatistics& pixels, uint64_t seed) {
  Config config;
  for (const char* assignment : {"model.name=mlp", "model.width=8", "model.depth=1"}) config.set(assignment);
  auto model = make_model(resolve(config, config_sections()), {1, 4, 4, 3}, pixels);
  initialize(*model, seed);
  return model;
}

// A network for `channels` and `classes`, 8 channels wide.
std::shared_ptr<ImageModel> small_resnet(int64_t channels, int64_t classes, uint64_t seed) {
  Config config;
  for (const char* assignment : {"model.name=resnet", "model.base_width=8"}) config.set(assignment);
  auto model = make_model(resolve(config, config_sections()), {channels, 16, 16, classes}, {});
  initialize(*model, seed);
  return model;
}

}  // namespace

// From a model with another normalisation, from one without, and into one without.
TEST(InitialWeights, WhatTheModelNormalisesByStays) {
  const testing::TemporaryFolder folder;
  const PixelStatistics one{{0.5}, {0.25}}, other{{0.1}, {0.3}};
  for (const auto& [source, target] : {std::pair{other, one}, {PixelStatistics(), one}, {other, PixelStatistics()}}) {
    const auto from = small_model(source, 1), to = small_model(target, 2);
    write_safetensors(folder.path("a.safetensors"), {named_weights(*from), {}});
    load_initial_weights(*to, folder.path("a.safetensors"));
    EXPECT_TRUE(to->pixel_statistics() == target);
    EXPECT_TRUE(torch::equal(to->named_parameters()["head.weight"], from->named_parameters()["head.weight"]));
  }
}

TEST(InitialWeights, StatisticsAloneAreNoWeights) {
  const testing::TemporaryFolder folder;
  const auto model = small_model({{0.5}, {0.25}}, 1);
  NamedTensors tensors = named_weights(*model);
  std::erase_if(tensors, [](const auto& entry) { return !is_pixel_statistics(entry.first); });
  ASSERT_EQ(tensors.size(), 2u);
  write_safetensors(folder.path("a.safetensors"), {tensors, {}});
  EXPECT_NE(testing::error_text([&] {
              load_initial_weights(*model, folder.path("a.safetensors"));
            }).find("no tensor of the file fits"),
            std::string::npos);
}

// A first convolution of 3 channels is summed to one: grey images have the features that they had in colour.
TEST(InitialWeights, AResnetGetsAHeadForItsClassesAndAStemForItsChannels) {
  const testing::TemporaryFolder folder;
  const auto from = small_resnet(3, 7, 1), to = small_resnet(1, 4, 2);
  const at::Tensor head = to->named_parameters()["fc.weight"].detach().clone();
  write_safetensors(folder.path("a.safetensors"), {named_weights(*from), {}});
  load_initial_weights(*to, folder.path("a.safetensors"));
  const at::Tensor grey = torch::rand({2, 1, 16, 16});
  EXPECT_TRUE(
      torch::allclose(to->forward({grey}).features, from->forward({grey.expand({2, 3, 16, 16})}).features, 1e-4, 1e-5));
  EXPECT_TRUE(torch::equal(to->named_parameters()["fc.weight"], head));
}

// timm's name of ConvNeXt's last norm begins as that of its head, which is new for other classes.
TEST(InitialWeights, TheLastNormOfAConvNextIsNoHead) {
  const testing::TemporaryFolder folder;
  const auto small_convnext = [](int64_t classes) {
    Config config;
    for (const char* assignment : {"model.name=convnext", "model.depths=[1,1]", "model.widths=[8,16]"})
      config.set(assignment);
    return make_model(resolve(config, config_sections()), {3, 16, 16, classes}, {});
  };
  const auto from = small_convnext(7), to = small_convnext(4);
  initialize(*from, 1), initialize(*to, 2);
  NamedTensors tensors = named_weights(*from);
  write_safetensors(folder.path("a.safetensors"), {tensors, {}});
  load_initial_weights(*to, folder.path("a.safetensors"));
  std::erase_if(tensors, [](const auto& entry) { return entry.first == "head.norm.weight"; });
  write_safetensors(folder.path("b.safetensors"), {tensors, {}});
  EXPECT_NE(testing::error_text([&] {
              load_initial_weights(*to, folder.path("b.safetensors"));
            }).find("head.norm.weight (not in the file)"),
            std::string::npos);
}

}  // namespace sparsight::initial_weights_test
