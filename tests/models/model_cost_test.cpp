// Costs of configurations, against the models that they build.
#include "sparsight/models/model_cost.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "sparsight/core/config.h"
#include "sparsight/models/register_models.h"
#include "sparsight/train/run_config.h"
#include "tests/support/errors.h"
#include "tests/support/paths.h"

namespace sparsight::model_cost_test {

Json resolved(const std::string& file, const std::vector<std::string>& settings = {}) {
  Config config = Config::from_file(test::source_path("configs/" + file));
  for (const std::string& setting : settings) config.set(setting);
  return resolve(config, config_sections());
}

int64_t parameters_built(const Json& config, const ImageShape& image) {
  const auto model = make_component(models(), config, "model", ModelContext{image, read_moe_spec(config)});
  int64_t count = 0;
  for (const at::Tensor& p : model->parameters()) count += p.numel();
  return count;
}

constexpr ImageShape kFace{3, 64, 64, 2}, kPicture{3, 32, 32, 10}, kDigits{1, 112, 112, 2};

TEST(ModelCost, P26_P27_P28_TheConfigurationsOfThePaperCostWhatTheirHeadersSay) {
  const struct {
    std::string file;
    ImageShape image;
    int64_t parameters, multiply_adds;
    std::vector<std::string> settings = {};
  } cases[] = {{"pmoe/wrn.toml", kFace, 7432961, 3986358912},
               {"pmoe/wrn_pmoe_celeba.toml", kFace, 7318401, 3935240832},
               {"pmoe/wrn_pmoe_celeba.toml", kFace, 7318401, 3109487232, {"experts.path=gathered"}},
               {"pmoe/wrn_pmoe_cifar.toml", kPicture, 3962890, 773937408},
               {"pmoe/wrn_pmoe_cifar.toml", kPicture, 3962890, 754276608, {"experts.path=gathered"}},
               {"pmoe/joint_mnist.toml", kDigits, 31360 + 6272, 188160 + 100352}};
  for (const auto& c : cases) {
    const Json config = resolved(c.file, c.settings);
    const Cost cost = total(model_cost(config, c.image));
    EXPECT_EQ(cost.parameters, c.parameters) << c.file;
    EXPECT_EQ(cost.multiply_adds, c.multiply_adds) << c.file;
    EXPECT_EQ(parameters_built(config, c.image), c.parameters) << c.file;
  }
}

// Other depths, widths and patches.
TEST(ModelCost, AgreesWithTheModelBuilt) {
  const ImageShape image{1, 24, 40, 3};
  for (const std::vector<std::string>& settings :
       {std::vector<std::string>{"model.depth=16", "model.widen=2", "model.patch=2", "experts.channels=128"},
        {"model.widen=1", "model.patch=1", "moe.experts=16", "experts.channels=64", "experts.kernel=5"},
        {"moe.shared=2", "model.widen=1", "model.patch=2", "experts.channels=64"},
        {"model.depth=22", "model.widen=1", "moe.blocks=[]"}}) {
    const Json config = resolved("pmoe/wrn_pmoe_celeba.toml", settings);
    EXPECT_EQ(total(model_cost(config, image)).parameters, parameters_built(config, image)) << settings[0];
  }
}

TEST(ModelCost, EveryConfigurationOfAVitAgreesWithTheModelBuilt) {
  const ImageShape image{3, 224, 224, 10};  // patches of 4, 7, 8 and 32 divide it
  const std::filesystem::path folder = test::source_path("configs");
  int64_t counted = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".toml") continue;
    const std::string file = entry.path().lexically_relative(folder).string();
    const Json config = resolved(file);
    if (config["model"]["name"] != "vit") continue;
    EXPECT_EQ(total(model_cost(config, image)).parameters, parameters_built(config, image)) << file;
    ++counted;
  }
  EXPECT_GE(counted, 5);
}

TEST(ModelCost, P26_TheTwoLayerNetworksCostWhatTheSpecificationSays) {
  const auto cost = [](const std::vector<std::string>& settings) {
    return model_cost(resolved("pmoe/joint_mnist.toml", settings), kDigits);
  };
  const auto expect = [](const PartCost& part, const std::string& name, int64_t parameters, int64_t multiply_adds) {
    EXPECT_EQ(part.part, name);
    EXPECT_EQ(part.cost.parameters, parameters) << name;
    EXPECT_EQ(part.cost.multiply_adds, multiply_adds) << name;
  };
  expect(cost({"moe.blocks=[]"}).at(0), "filters", 31360, 501760);
  const auto separate = cost({"moe.experts=2", "router.patches=2"}), joint = cost({});
  expect(separate.at(0), "moe.router", 1568, 25088);
  expect(separate.at(1), "moe.experts", 31360, 62720);
  expect(joint.at(0), "moe.router", 6272, 100352);
  expect(joint.at(1), "moe.experts", 31360, 188160);
}

TEST(ModelCost, NetworksOnPatchesAgreeWithTheModelBuilt) {
  for (const std::vector<std::string>& settings :
       {std::vector<std::string>{"moe.shared=2"},
        {"moe.shared=1", "moe.shared_hidden=3", "experts.bias=true"},
        {"experts.channels=1", "experts.kernel=5", "experts.stride=2", "experts.output=trained"},
        {"moe.blocks=[]", "experts.bias=true", "experts.channels=1", "experts.kernel=3", "experts.padding=1"}}) {
    const Json config = resolved("pmoe/joint_mnist.toml", settings);
    EXPECT_EQ(total(model_cost(config, kDigits)).parameters, parameters_built(config, kDigits)) << settings[0];
  }
  Config config = Config::from_text("", "");
  for (const char* setting : {"model.name=patch_cnn", "moe.blocks=[0]", "experts.depth=2", "router.name=cosine"})
    config.set(setting);
  const Json all = resolve(config, config_sections());
  EXPECT_EQ(total(model_cost(all, kDigits)).parameters, parameters_built(all, kDigits));
}

// 65 tokens of width 64, MLPs of 128. Each of 4 blocks: 65 * 4 * 64² + 2 * 65² * 64 products of attention, 16,640
// parameters of it and 256 of norms. 2 MLPs of 16,384 products a token and 16,576 parameters, 2 MoE layers of 64 * 8
// and two experts a token, of eight with 8,192 products and 8,320 parameters each. The stem's first block is on 16 x 16
// positions: 9 * 32 + 9 * 32² + 32 products each; the second on 8 x 8: 9 * 32 * 64 + 9 * 64² + 32 * 64.
TEST(ModelCost, TheDemoByHand) {
  const Cost cost = total(model_cost(resolved("demo.toml"), {1, 32, 32, 12}));
  EXPECT_EQ(cost.multiply_adds, 256 * (288 + 9216 + 32) + 64 * (18432 + 36864 + 2048) + 64 * 64 * 64 + 4 * 1605760 +
                                    2 * 65 * 16384 + 2 * 65 * (512 + 2 * 8192) + 64 * 12);
  EXPECT_EQ(cost.parameters, 288 + 9216 + 32 + 2 * 64 + 18432 + 36864 + 2048 + 2 * 128 + 65 * 64 + 64 + 65 * 64 +
                                 4 * (16640 + 256) + 2 * 16576 + 2 * (512 + 8 * 8320) + 128 + 65 * 12);
}

TEST(ModelCost, VitsOfOtherShapesAgreeWithTheModelBuilt) {
  const ImageShape image{1, 16, 24, 5};
  for (const std::vector<std::string>& settings : {std::vector<std::string>{"moe.blocks=[]"},
                                                   {"model.pool=mean", "model.qkv_bias=false", "model.mlp_ratio=0.7"},
                                                   {"model.size=tiny", "model.patch=8", "moe.experts=2"},
                                                   {"model.stem=[]"},
                                                   {"model.patch=8", "model.stem=[6, 8, 10]"},
                                                   {"moe.hidden=7", "experts.depth=3", "experts.bias=false"},
                                                   {"moe.shared=2", "moe.shared_hidden=5"},
                                                   {"moe.shared=1", "experts.name=swiglu"},
                                                   {"experts.name=swiglu", "experts.bias=true"},
                                                   {"experts.name=linear"}}) {
    const Json config = resolved("demo.toml", settings);
    EXPECT_EQ(total(model_cost(config, image)).parameters, parameters_built(config, image)) << settings[0];
  }
}

TEST(ModelCost, VitsWithEachRouterAgreeWithTheModelBuilt) {
  const ImageShape image{1, 16, 16, 5};
  for (const std::vector<std::string>& settings : {std::vector<std::string>{"softmax_topk"},
                                                   {"noisy_topk"},
                                                   {"gshard_top2"},
                                                   {"switch_top1"},
                                                   {"cosine", "router.width=24"},
                                                   {"cosine", "router.learn_temperature=false"},
                                                   {"sigmoid_bias"},
                                                   {"dense_softmax"},
                                                   {"hash"},
                                                   {"random"},
                                                   {"round_robin"},
                                                   {"expert_choice"},
                                                   {"patch_choice"},
                                                   {"balanced_batchwise"},
                                                   {"hierarchical"},
                                                   {"balanced_hierarchical"},
                                                   {"per_image"},
                                                   {"per_image", "router.norm=affine"},
                                                   {"base"},
                                                   {"sinkhorn"},
                                                   {"soft_moe"},
                                                   {"soft_moe", "router.slots=3", "router.normalize=false"}}) {
    Config config = Config::from_text("", "");
    for (const char* setting : {"model.width=16", "model.depth=3", "moe.blocks=[0, -1]", "moe.experts=4"})
      config.set(setting);
    config.set("router.name=" + settings[0]);
    for (size_t i = 1; i < settings.size(); ++i) config.set(settings[i]);
    const Json all = resolve(config, config_sections());
    EXPECT_EQ(total(model_cost(all, image)).parameters, parameters_built(all, image)) << settings[0];
  }
}

TEST(ModelCost, SizesThatDoNotFitAreTheErrorsOfTheModel) {
  constexpr ImageShape kGlyph{1, 32, 32, 12};
  const struct {
    std::string file;
    ImageShape image;
    std::vector<std::string> settings;
    std::string error;
  } cases[] = {
      {"pmoe/joint_mnist.toml", {1, 2, 2, 2}, {}, "[model] patch = 0 does not divide images of 2x2"},
      {"pmoe/joint_mnist.toml", {1, 30, 30, 2}, {}, "[model] patch = 7 does not divide images of 30x30"},
      {"pmoe/joint_mnist.toml",
       kDigits,
       {"moe.blocks=[1]"},
       "[moe] blocks: there is no block 1 in a model of 1 blocks"},
      {"pmoe/joint_mnist.toml", kDigits, {"moe.experts=3"}, "40 filters cannot be divided evenly among 3 experts"},
      {"pmoe/wrn.toml", kFace, {"model.depth=12"}, "[model] depth must be 6 n + 4 (10, 16, 22, 28, ...), got 12"},
      {"pmoe/wrn_pmoe_celeba.toml", {3, 40, 40, 2}, {}, "[model] patch = 4 does not divide the feature map of 10x10"},
      {"pmoe/wrn_pmoe_celeba.toml", kFace, {"moe.experts=7"}, "[experts] norm_conv divides the output channels"},
      {"pmoe/wrn_pmoe_celeba.toml", kFace, {"moe.shared=3"}, "[experts] norm_conv divides the output channels"},
      {"pmoe/wrn_pmoe_celeba.toml", kFace, {"experts.channels=7"}, "[experts] channels = 7: a row of 10240 values"},
      {"pmoe/wrn_pmoe_celeba.toml", kFace, {"experts.kernel=2"}, "[experts] kernel must be odd, got 2"},
      {"demo.toml", {1, 30, 30, 12}, {}, "[model] patch 4 does not divide images of 30x30"},
      {"demo.toml", kGlyph, {"model.heads=5"}, "[model] heads 5 does not divide width 64"},
      {"demo.toml", kGlyph, {"moe.blocks=[4]"}, "[moe] blocks: there is no block 4 in a model of 4 blocks"},
      {"demo.toml", kGlyph, {"router.k=9"}, "[router] chooses 9 experts per token but [moe] experts is 8"},
  };
  for (const auto& c : cases) {
    const Json config = resolved(c.file, c.settings);
    const std::string message = testing::error_text<UsageError>([&] { model_cost(config, c.image); });
    EXPECT_TRUE(message.starts_with(c.error)) << message;
    EXPECT_EQ(message, testing::error_text<UsageError>([&] { parameters_built(config, c.image); }));
  }
}

// Models detect this only when they get images.
TEST(ModelCost, ExpertsTakeNoMorePatchesThanThereAre) {
  const struct {
    std::string file;
    ImageShape image;
    int64_t patches;
  } cases[] = {{"pmoe/joint_mnist.toml", kDigits, 16}, {"pmoe/wrn_pmoe_celeba.toml", kFace, 16}};
  for (const auto& c : cases) {
    const auto taking = [&](int64_t patches) {
      return testing::error_text<UsageError>(
          [&] { model_cost(resolved(c.file, {cat("router.patches=", patches)}), c.image); });
    };
    EXPECT_EQ(taking(c.patches), "");
    EXPECT_EQ(taking(c.patches + 1),
              cat("[router] each expert takes ", c.patches + 1, " patches but an image has ", c.patches,
                  " patches; lower patches (in evaluation eval_patches) or use smaller patches"));
  }
}

// Any router and experts in a wide residual network, and the models that are neither vit nor on patches.
TEST(ModelCost, EveryModelAndLayerIsCounted) {
  Json config = resolved("pmoe/wrn_pmoe_celeba.toml");
  config["router"] = {{"name", "hash"}};
  EXPECT_EQ(total(model_cost(config, kFace)).parameters, parameters_built(config, kFace));
  for (const std::vector<std::string>& settings : {std::vector<std::string>{"model.name=cnn", "moe.blocks=[0]"},
                                                   {"model.name=cnn", "model.widths=[6, 20]", "model.blocks=2"},
                                                   {"model.name=mlp", "moe.blocks=[1]", "moe.shared=1"},
                                                   {"model.name=mlp", "moe.blocks=[0, 1]", "router.scope=model"},
                                                   {"model.name=vit", "model.pre_logits=true"}}) {
    Config chosen = Config::from_text("", "");
    for (const std::string& setting : settings) chosen.set(setting);
    const Json all = resolve(chosen, config_sections());
    const Cost cost = total(model_cost(all, kPicture));
    EXPECT_EQ(cost.parameters, parameters_built(all, kPicture)) << settings[0];
    EXPECT_GT(cost.multiply_adds, 0);
    EXPECT_FALSE(cost.assumed);
  }
}

// 2 x 2 images of one channel: 4 -> 3 (15 parameters), a block of norm and 3 -> 6 -> 3 (6 + 45), norm, 3 -> 2.
// Elementwise: biases 3 + 6 + 3 + 2, norms 7 * 3 twice, GELU 5 * 6, the residual 3.
TEST(ModelCost, AnMlpByHand) {
  Config config = Config::from_text("", "");
  for (const char* setting : {"model.name=mlp", "model.width=3", "model.depth=1", "model.mlp_ratio=2"})
    config.set(setting);
  const Cost cost = total(model_cost(resolve(config, config_sections()), {1, 2, 2, 2}));
  EXPECT_EQ(cost.multiply_adds, 12 + 36 + 6);
  EXPECT_EQ(cost.elementwise, 14 + 42 + 30 + 3);
  EXPECT_EQ(cost.parameters, 15 + 6 + 45 + 6 + 8);
  EXPECT_EQ(cost.active_parameters, cost.parameters);
  EXPECT_EQ(cost.weight_bytes, 4 * cost.parameters);
}

// 3 x 3 images of one channel and one stage of 2: stem 9 * 2 products at 9 positions, two 3x3 convolutions 2 -> 2, the
// head 2 -> 3. Elementwise at each position: three norms of 2, three relus and a residual of 2, the mean's 2; 3 biases.
TEST(ModelCost, ACnnByHand) {
  Config config = Config::from_text("", "");
  for (const char* setting : {"model.name=cnn", "model.widths=[2]"}) config.set(setting);
  const Cost cost = total(model_cost(resolve(config, config_sections()), {1, 3, 3, 3}));
  EXPECT_EQ(cost.multiply_adds, 9 * 18 + 2 * 9 * 36 + 6);
  EXPECT_EQ(cost.elementwise, 9 * (3 * 14 + 3 * 2 + 2 + 2) + 3);
  EXPECT_EQ(cost.parameters, 18 + 2 * 36 + 3 * 4 + 9);
}

// Counting the cost of terabytes of experts takes no memory.
TEST(ModelCost, ModelsOfAnySizeAreCountedWithoutMemory) {
  const Json config = resolved("demo.toml", {"model.size=huge", "model.patch=16", "moe.experts=65536", "moe.hidden=0"});
  const Cost cost = total(model_cost(config, {3, 224, 224, 1000}));
  EXPECT_GT(cost.parameters, int64_t{1} << 39);
  EXPECT_LT(cost.active_parameters, int64_t{1} << 30);
  const Json largest =
      resolved("demo.toml", {"model.width=16384", "model.patch=1", "model.stem=[]", "model.depth=1000"});
  EXPECT_NE(testing::error_text<Error>([&] {
              model_cost(largest, {3, 4096, 4096, 10});
            }).find("does not fit 64 bits"),
            std::string::npos);
}

}  // namespace sparsight::model_cost_test
