// What the figures on small models measure: accuracies of example 1 by hand, and spectra of models whose filters are
// known.
#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>
#include <torch/types.h>

#include <nlohmann/json.hpp>

#include "sparsight/analysis/spectrum.h"
#include "sparsight/catalogue/model_sections.h"
#include "sparsight/core/config.h"
#include "sparsight/models/make_model.h"
#include "sparsight/nn/init.h"
#include "sparsight/papers/gmoe/figures/block_spectra.h"
#include "sparsight/papers/gmoe/figures/example1.h"
#include "sparsight/papers/gmoe/figures/small_models.h"
#include "sparsight/papers/register_figures.h"
#include "sparsight/reproduce/run_figure.h"
#include "tests/support/errors.h"
#include "tests/support/program.h"
#include "tests/support/random_tensor.h"

namespace sparsight::gmoe::image_figures_test {
namespace {

Json cells(double red_ellipse, double blue_ellipse, double red_square, double blue_square) {
  const auto cell = [](const char* shape, const char* colour, double accuracy) {
    return Json{{"class", shape}, {"domain", colour}, {"images", 10}, {"accuracy", accuracy}};
  };
  return Json::array({cell("ellipse", "red", red_ellipse), cell("ellipse", "blue", blue_ellipse),
                      cell("square", "red", red_square), cell("square", "blue", blue_square)});
}

std::shared_ptr<ImageModel> small_model(const char* name) {
  SmallModels options;
  options.cnn_widths = {8, 16}, options.width = 16, options.heads = 2, options.depth = 4;
  const Json sections = small_model_sections(name, options);
  Config config;
  for (const auto& section : model_sections())
    if (sections.contains(section.name))
      for (const auto& [key, value] : sections[section.name].items()) config.set(section.name, key, value, "test");
  const auto model = make_model(resolve(config, model_sections()), {3, 16, 16, 2});
  initialize(*model, 1);
  return model;
}

at::Tensor pixels() { return test::random_tensor({3, 3, 16, 16}, 2, torch::kFloat).sigmoid(); }

void fill(ImageModel& model, const std::string& part, double value) {
  const torch::NoGradGuard no_grad;
  for (auto& p : model.named_parameters())
    if (p.key().find(part) != std::string::npos) p.value().fill_(value);
}

const BlockSpectrum& find_spectrum(const std::vector<BlockSpectrum>& all, const std::string& operation, int64_t layer) {
  for (const BlockSpectrum& block : all)
    if (block.operation == operation && block.layer == layer) return block;
  throw std::out_of_range(operation);
}

}  // namespace

// Training: 0.45 red ellipses, 0.05 blue ones, 0.25 squares of each colour.
TEST(Example1, AccuraciesByHand) {
  const Json found = example1_measures(cells(0.9, 0.5, 0.7, 1), {});
  EXPECT_NEAR(found.at("accuracy").get<double>(), 77.5, 1e-9);         // (90 + 50 + 70 + 100) / 4
  EXPECT_NEAR(found.at("in_distribution").get<double>(), 85.5, 1e-9);  // 40.5 + 2.5 + 17.5 + 25
  EXPECT_NEAR(found.at("conflicting").get<double>(), 60, 1e-9);        // (50 + 70) / 2
  EXPECT_NEAR(found.at("reliance").get<double>(), 35, 1e-9);           // (90 + 100) / 2 - 60
  EXPECT_NEAR(found.at("worst").get<double>(), 50, 1e-9);
}

// With n images of each combination, the uniform mean has 4 n, a mean of two has 2 n, and that with the training shares
// n / (0.45^2 + 0.05^2 + 0.25^2 + 0.25^2) = n / 0.33.
TEST(Example1, CountsTheImagesBehindItsMeans) {
  const Json all = cells(0.9, 0.5, 0.7, 1), found = example1_measures(all, {});
  const auto n = all.at(0).at("images").get<double>();
  EXPECT_NEAR(found.at("accuracy_images").get<double>(), 4 * n, 1e-9);
  EXPECT_NEAR(found.at("together_images").get<double>(), 2 * n, 1e-9);
  EXPECT_NEAR(found.at("conflicting_images").get<double>(), 2 * n, 1e-9);
  EXPECT_NEAR(found.at("in_distribution_images").get<double>(), n / 0.33, 1e-9);
}

// A model of the colour alone: ellipses are red, squares blue. 0.45 + 0.25 in training, a half in the test.
TEST(Example1, ColourAloneIsRightInSeventyPercentOfTheTraining) {
  const Json found = example1_measures(cells(1, 0, 0, 1), {});
  EXPECT_NEAR(found.at("in_distribution").get<double>(), 70, 1e-9);
  EXPECT_NEAR(found.at("accuracy").get<double>(), 50, 1e-9);
  EXPECT_NEAR(found.at("reliance").get<double>(), 100, 1e-9);
}

TEST(Example1, NeedsAllFourCombinations) {
  Json three = cells(1, 1, 1, 1);
  three.erase(1);
  EXPECT_NE(testing::error_text([&] { example1_measures(three, {}); }).find("has no blue ellipse"), std::string::npos);
}

TEST(SmallModels, TheMoeHasItsLayersInTheLastTwoEvenBlocks) {
  EXPECT_EQ(small_model_sections(kSmallMoe, {})["moe"]["blocks"], Json({-4, -2}));
  EXPECT_FALSE(small_model_sections(kSmallVit, {}).contains("moe"));
  SmallModels shallow;
  shallow.depth = 3;
  EXPECT_NE(testing::error_text([&] { small_model_sections(kSmallMoe, shallow); }).find("at least 4"),
            std::string::npos);
  const auto model = small_model(kSmallMoe);
  EXPECT_TRUE(model->named_modules().contains("blocks.0.mlp.router"));
  EXPECT_FALSE(model->named_modules().contains("blocks.1.mlp.router"));
  EXPECT_TRUE(model->named_modules().contains("blocks.2.mlp.router"));
}

// Queries of 0 attend to all tokens alike: the output is the same everywhere, all of it at frequency 0.
TEST(BlockSpectra, AttentionToAllTokensAlikeIsALowPassFilter) {
  for (const char* name : {kSmallVit, kSmallMoe}) {
    const auto model = small_model(name);
    fill(*model, "attn.qkv", 0);
    {
      const torch::NoGradGuard no_grad;
      for (auto& p : model->named_parameters())
        if (p.key().find("attn.qkv.weight") != std::string::npos)
          p.value().narrow(0, 32, 16).copy_(torch::eye(16));  // the values are the tokens
    }
    const std::vector<BlockSpectrum> all = block_spectra(*model, pixels());
    ASSERT_EQ(all.size(), 8u);
    for (int64_t layer = 0; layer < 4; ++layer) {
      const BlockSpectrum& block = find_spectrum(all, kAttention, layer);
      EXPECT_LT(block.operation_change(), -2) << name << " " << layer;
      EXPECT_LT(block.operation_out, -4);
    }
  }
}

// Branches that add nothing change nothing, and the stream goes through from block to block.
TEST(BlockSpectra, BranchesOfZeroChangeNothing) {
  const auto model = small_model(kSmallVit);
  fill(*model, "attn.proj", 0);
  fill(*model, "mlp.fc2", 0);
  const std::vector<BlockSpectrum> all = block_spectra(*model, pixels());
  for (const BlockSpectrum& block : all) {
    EXPECT_NEAR(block.change(), 0, 1e-5) << block.operation << " " << block.layer;
    EXPECT_NEAR(block.before, all.front().before, 1e-5);
  }
  const at::Tensor patches = model->forward({.images = pixels(), .taps = {"patch_embed"}}).taps.at("patch_embed");
  const at::Tensor tokens = patches + model->named_parameters()["pos_embed"].slice(1, 1);
  EXPECT_NEAR(all.front().before, high_frequency_amplitude(tokens.transpose(1, 2).reshape({3, 16, 4, 4})), 1e-5);
}

// The first convolution of every block that keeps its shape as a Laplacian, and as an average.
TEST(BlockSpectra, ConvolutionsWithKnownKernels) {
  const auto with_kernel = [](const std::vector<float>& kernel) {
    const auto model = small_model(kSmallCnn);
    const torch::NoGradGuard no_grad;
    for (auto& p : model->named_parameters())
      if (p.key().find("conv1.weight") != std::string::npos)
        p.value().copy_(torch::tensor(kernel).view({1, 1, 3, 3}).expand_as(p.value()));
    return block_spectra(*model, pixels());
  };
  const std::vector<BlockSpectrum> sharp = with_kernel({0, -1, 0, -1, 4, -1, 0, -1, 0}),
                                   smooth = with_kernel(std::vector<float>(9, 1.0F / 9));
  ASSERT_EQ(sharp.size(), 3u);  // blocks 0, 1 and 3; block 2 halves its map
  EXPECT_EQ(sharp[2].layer, 3);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_GT(sharp[i].operation_change(), 1) << i;
    EXPECT_LT(smooth[i].operation_change(), -1) << i;
  }
}

TEST(BlockSpectra, OtherModelsAreAnError) {
  Config config;
  config.set("model", "name", "mlp", "test");
  const auto model = make_model(resolve(config, model_sections()), {3, 16, 16, 2});
  initialize(*model, 1);
  EXPECT_NE(testing::error_text([&] { block_spectra(*model, pixels()); }).find("of the models vit and cnn"),
            std::string::npos);
}

// 2 transformers of 4 blocks with two operations each, 3 convolution blocks; each model is trained once.
TEST(FrequencyFigure, TrainsEachModelOnce) {
  const testing::TemporaryFolder folder;
  FigureRequest request;
  request.run = {Scale::smoke, "", folder.path("run")};
  const FigureOutcome outcome = run_figure(find_figure("gmoe/frequency"), request);
  EXPECT_TRUE(outcome.failed.empty());
  EXPECT_EQ(outcome.table.rows.size(), 19u);
  int weights = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path("run/models")))
    weights += entry.path().extension() == ".safetensors" ? 1 : 0;
  EXPECT_EQ(weights, 3);
  const auto at = [&](const char* measure) {
    return *outcome.table.mean({{"operation", "ViT attention"}, {"layer", 1}}, measure);
  };
  EXPECT_NEAR(at("change"), at("after") - at("before"), 1e-9);
}

}  // namespace sparsight::gmoe::image_figures_test
