// Costs of configurations, against the models that they build.
#include "sparsight/analysis/model_cost.h"

#include <gtest/gtest.h>

#include "sparsight/core/config.h"
#include "sparsight/models/register_models.h"
#include "sparsight/train/run_config.h"
#include "tests/support/errors.h"
#include "tests/support/paths.h"

namespace sparsight::model_cost_test {

Json resolved(const std::string& file, const std::vector<std::string>& settings = {}) {
  Config config = Config::from_file(test::source_path("configs/pmoe/" + file));
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
  } cases[] = {{"wrn.toml", kFace, 7432961, 3986358912},
               {"wrn_pmoe_celeba.toml", kFace, 7318401, 3935240832},
               {"wrn_pmoe_celeba.toml", kFace, 7318401, 3109487232, {"experts.path=gathered"}},
               {"wrn_pmoe_cifar.toml", kPicture, 3962890, 773937408},
               {"wrn_pmoe_cifar.toml", kPicture, 3962890, 754276608, {"experts.path=gathered"}},
               {"joint_mnist.toml", kDigits, 31360 + 6272, 188160 + 100352}};
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
        {"model.depth=22", "model.widen=1", "moe.blocks=[]"}}) {
    const Json config = resolved("wrn_pmoe_celeba.toml", settings);
    EXPECT_EQ(total(model_cost(config, image)).parameters, parameters_built(config, image)) << settings[0];
  }
}

TEST(ModelCost, SaysWhatItDoesNotCount) {
  Json config = resolved("wrn_pmoe_celeba.toml");
  config["router"] = {{"name", "hash"}};
  EXPECT_EQ(
      testing::message_of<UsageError>([&] { model_cost(config, kFace); }),
      "the cost of wide_resnet is counted with router patch_choice and experts norm_conv, not with router hash and "
      "experts norm_conv");
  config["model"] = {{"name", "vit"}};
  EXPECT_EQ(testing::message_of<UsageError>([&] { model_cost(config, kFace); }),
            "the cost of vit is not counted; it is for wide_resnet and patch_cnn");
}

}  // namespace sparsight::model_cost_test
