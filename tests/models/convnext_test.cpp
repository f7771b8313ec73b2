// ConvNeXt: published numbers, names of parameters, blocks, small images, settings that do not fit.
#include "sparsight/models/convnext.h"

#include <gtest/gtest.h>

#include "sparsight/infer/derived_model.h"
#include "sparsight/io/weights.h"
#include "sparsight/nn/init.h"
#include "sparsight/nn/parameter_memory.h"
#include "tests/support/cost_coverage.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"
#include "tests/support/near.h"
#include "tests/support/program_answers.h"
#include "tests/support/random_tensor.h"

namespace sparsight::convnext_test {
namespace {

std::shared_ptr<ConvNext> small_convnext(ConvNextOptions options, int64_t side = 32,
                                         const std::vector<int64_t>& moe_blocks = {}) {
  options.widths = {8, 16, 24};
  auto model = std::make_shared<ConvNext>(options, ModelContext{{3, side, side, 5}, default_moe_spec(moe_blocks)});
  initialize(*model, 1);
  return model;
}

std::shared_ptr<ConvNextBlock> small_block(const ConvNextBlockOptions& options) {
  auto block = std::make_shared<ConvNextBlock>(options, nullptr);
  initialize(*block, 1);
  return block;
}

std::vector<std::string> weight_names(const ImageModel& model) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : named_weights(model)) names.push_back(name);
  return names;
}

}  // namespace

// Parameters are torchvision's of convnext_tiny to _large (num_params of their weights), and the multiply-adds its
// GFLOPS, 4.456, 8.684, 15.355 and 34.361.
TEST(ConvNext, HasThePublishedNumbersOfParametersAndMultiplyAdds) {
  const std::tuple<const char*, int64_t, double> sizes[] = {{"tiny", 28'589'128, 4.456e9},
                                                            {"small", 50'223'688, 8.684e9},
                                                            {"base", 88'591'464, 15.355e9},
                                                            {"large", 197'767'336, 34.361e9}};
  for (const auto& [size, parameters, multiply_adds] : sizes) {
    const MetaParameters without_memory;
    const ConvNext model({.size = size}, ModelContext{{3, 224, 224, 1000}, default_moe_spec()});
    EXPECT_EQ(test::parameter_count(model), parameters) << size;
    const Cost cost = total(model.cost({}));
    EXPECT_EQ(cost.parameters, parameters) << size;
    EXPECT_NEAR(static_cast<double>(cost.multiply_adds), multiply_adds, 0.005 * multiply_adds) << size;
  }
}

// timm 1.0.31: ConvNeXt(depths=(1, 1, 1, 1)).state_dict(), without its last stages.
TEST(ConvNext, HasTimmsNames) {
  const auto model = small_convnext({.depths = {1, 1, 1}});
  const std::vector<std::string> names = weight_names(*model);
  for (const char* name :
       {"stem.0.weight", "stem.1.bias", "stages.0.blocks.0.gamma", "stages.0.blocks.0.conv_dw.weight",
        "stages.0.blocks.0.norm.weight", "stages.0.blocks.0.mlp.fc1.weight", "stages.0.blocks.0.mlp.fc2.bias",
        "stages.1.downsample.0.weight", "stages.1.downsample.1.weight", "head.norm.weight", "head.fc.bias"})
    EXPECT_NE(std::ranges::find(names, name), names.end()) << name;
  EXPECT_EQ(std::ranges::find(names, "stages.0.downsample.0.weight"), names.end());
  EXPECT_EQ(names.size(), 4u + 3 * 9 + 2 * 4 + 4);  // stem, blocks, layers between stages, head
}

// With factors of 0 a block passes its input on.
TEST(ConvNext, FactorsScaleTheBranches) {
  const auto model = small_convnext({.layer_scale = 0.5});
  const at::Tensor x = test::random_tensor({2, 3, 32, 32}, 3, torch::kFloat);
  ModelInput input{x};
  input.taps = {"stem", "stages.0.blocks.0"};
  const torch::NoGradGuard no_grad;
  const ModelOutput with = model->forward(input);
  EXPECT_FALSE(test::near(with.taps.at("stages.0.blocks.0"), with.taps.at("stem"), 1e-4));
  model->named_parameters()["stages.0.blocks.0.gamma"].zero_();
  const ModelOutput without = model->forward(input);
  EXPECT_TRUE(torch::equal(without.taps.at("stages.0.blocks.0"), without.taps.at("stem")));
  for (const std::string& name : weight_names(*small_convnext({.layer_scale = 0})))
    EXPECT_FALSE(name.ends_with(".gamma")) << name;
}

TEST(ConvNext, DropPathLeavesOutBranchesOfWholeImages) {
  const auto model = small_convnext({.layer_scale = 1, .drop_path = 0.9});
  const at::Tensor x = test::random_tensor({64, 3, 32, 32}, 3, torch::kFloat);
  ForwardMode mode = ForwardMode::evaluation();
  mode.drop_path = true;
  ModelInput input{x, mode, {1, 0}};
  input.taps = {"stages.2.blocks.0", "stages.2.blocks.1"};
  const torch::NoGradGuard no_grad;
  const ModelOutput out = model->forward(input);
  const at::Tensor changed =
      (out.taps.at("stages.2.blocks.1") - out.taps.at("stages.2.blocks.0")).abs().flatten(1).amax(1) > 0;
  const int64_t count = changed.sum().item<int64_t>();
  EXPECT_GT(count, 0);  // each of 64 images keeps the branch with probability 0.1
  EXPECT_LT(count, 64);
}

TEST(ConvNextBlock, ScalesTheBranchesThatItKeeps) {
  constexpr double kKeep = 0.25;
  const auto block = small_block({.width = 8, .layer_scale = 1, .drop_path = 1 - kKeep, .path = "block"});
  const at::Tensor x = test::random_tensor({64, 8, 3, 3}, 3, torch::kFloat);
  ModelInput input{x, ForwardMode::evaluation(), {1, 0}};
  ModelOutput out;
  const torch::NoGradGuard no_grad;
  const at::Tensor branch = block->forward(x, input, out) - x;
  input.mode.drop_path = true;
  const at::Tensor dropped = block->forward(x, input, out) - x;
  const at::Tensor changed = dropped.ne(0).any(1).flatten(1);  // [B,positions]
  const at::Tensor kept = changed.any(1);
  EXPECT_TRUE(torch::equal(changed, kept.unsqueeze(1).expand_as(changed)));
  const int64_t count = kept.sum().item<int64_t>();
  EXPECT_GT(count, 0);
  EXPECT_LT(count, 64);
  EXPECT_TRUE(test::near(dropped, branch / kKeep * kept.view({-1, 1, 1, 1}), 1e-5));
}

TEST(ConvNextBlock, GradientsAgreeWithCentralDifferences) {
  const auto block = small_block({.width = 4, .layer_scale = 0.5, .path = "block"});
  block->to(torch::kDouble);
  std::vector<at::Tensor> inputs = block->parameters();
  {
    const torch::NoGradGuard no_grad;
    for (size_t i = 0; i < inputs.size(); ++i) inputs[i].copy_(test::random_tensor(inputs[i].sizes(), 10 + i) / 2);
  }
  const at::Tensor x = test::random_tensor({2, 4, 3, 2}, 2), upstream = test::random_tensor({2, 4, 3, 2}, 3);
  inputs.push_back(x);
  const auto loss = [&] {
    ModelOutput out;
    return (block->forward(x, {x}, out) * upstream).sum();
  };
  EXPECT_LT(test::gradient_error(loss, inputs), 1e-6);
}

// Sides that a stride does not divide: zeros on both edges complete the windows, so that any size has a map.
TEST(ConvNext, TakesImagesOfAnySize) {
  for (const int64_t side : {1, 5, 18, 33}) {
    const auto model = small_convnext({}, side);
    const at::Tensor x = test::random_tensor({2, 3, side, side}, 3, torch::kFloat);
    const torch::NoGradGuard no_grad;
    const at::Tensor logits = model->forward({x}).logits;
    EXPECT_TRUE(test::near(test::program_logits(*model, x), logits, 1e-5)) << side;
  }
}

// Blocks are counted over all stages: the last but one of 1 + 1 + 2 is the first of stage 2.
TEST(ConvNext, MoeLayersRouteThePositionsOfTheirMaps) {
  const auto model = small_convnext({}, 32, {1, -2});
  const ModelOutput out = model->forward({test::random_tensor({2, 3, 32, 32}, 3, torch::kFloat)});
  ASSERT_EQ(out.routings.size(), 2u);
  EXPECT_EQ(out.routings[0].layer, "stages.1.blocks.0.mlp");
  EXPECT_EQ(out.routings[0].tokens, 2 * 4 * 4);  // 32 / 4 / 2
  EXPECT_EQ(out.routings[1].layer, "stages.2.blocks.0.mlp");
  EXPECT_EQ(out.routings[1].layout.grid_height, 2);
}

TEST(ConvNext, FollowsFromItsWeights) {
  const auto model = small_convnext({.patch = 2, .layer_scale = 0});
  const DerivedModel derived = derive_model(named_weights(*model), "w.pth");
  EXPECT_EQ(
      derived.settings,
      (Json{{"name", "convnext"}, {"depths", {1, 1, 2}}, {"widths", {8, 16, 24}}, {"patch", 2}, {"layer_scale", 0}}));
  EXPECT_EQ(derived.side, 224);
}

TEST(ConvNext, RefusesStagesThatDoNotFit) {
  const auto refusal = [](ConvNextOptions options) {
    return testing::error_text<UsageError>([&] {
      ConvNext(options, ModelContext{{3, 32, 32, 5}, default_moe_spec()});
    });
  };
  EXPECT_EQ(refusal({.depths = {1, 1}}),
            "[model] depths has 2 stages and widths 3; give both for each stage, at least one");
  EXPECT_EQ(refusal({.depths = {}, .widths = {}}),
            "[model] depths has 0 stages and widths 0; give both for each stage, at least one");
}

}  // namespace sparsight::convnext_test
