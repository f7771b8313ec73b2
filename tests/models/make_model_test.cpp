#include "sparsight/models/make_model.h"

#include <gtest/gtest.h>

#include "sparsight/core/config.h"
#include "sparsight/data/transforms/pipeline.h"
#include "sparsight/io/weights.h"
#include "sparsight/models/register_models.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/nn/batch_norm.h"
#include "sparsight/nn/init.h"
#include "sparsight/train/run_config.h"
#include "tests/support/errors.h"
#include "tests/support/random_tensor.h"

namespace sparsight::make_model_test {
namespace {

const char* const kNormalize = R"({op="normalize",mean=[0.4,0.5,0.6],std=[0.2,0.25,0.3]})";

// A small dense ViT; `train` and `eval` are lists of steps.
Json make_config(const std::string& train, const std::string& eval) {
  Config config;
  for (const std::string& assignment :
       {std::string("model.width=8"), std::string("model.depth=1"), std::string("model.heads=2"),
        "transforms.train=[" + train + "]", "transforms.eval=[" + eval + "]"})
    config.set(assignment);
  return resolve(config, config_sections());
}

constexpr ImageShape kColour{3, 8, 8, 5};

}  // namespace

TEST(MakeModel, NormalisesByWhatTheTransformsName) {
  const Json resolved = make_config(kNormalize, kNormalize);
  const auto model = make_model(resolved, kColour), plain = make_model(resolved, kColour, {});
  EXPECT_TRUE(model->pixel_statistics() == (PixelStatistics{{0.4, 0.5, 0.6}, {0.2, 0.25, 0.3}}));
  EXPECT_TRUE(plain->pixel_statistics().empty());
  EXPECT_TRUE(model->named_buffers().contains("normalize.mean"));
  EXPECT_TRUE(model->named_buffers().contains("normalize.std"));
  EXPECT_EQ(plain->named_buffers().size(), 0u);
  initialize(*model, 1);
  initialize(*plain, 1);
  const at::Tensor pixels = torch::rand({4, 3, 8, 8});
  const at::Tensor normalised = Normalize(model->pixel_statistics(), 3).forward(pixels);
  EXPECT_TRUE(torch::equal(model->forward({pixels}).logits, plain->forward({normalised}).logits));
  EXPECT_FALSE(torch::equal(model->forward({pixels}).logits, plain->forward({pixels}).logits));
}

TEST(MakeModel, OneNormalisationForTrainingAndEvaluation) {
  const auto refusal = [](const std::string& train, const std::string& eval) {
    return testing::error_text<UsageError>([&] { make_model(make_config(train, eval), kColour); });
  };
  EXPECT_EQ(refusal("", ""), "");
  EXPECT_EQ(refusal("{op=\"flip\"}," + std::string(kNormalize), kNormalize), "");
  EXPECT_EQ(
      refusal("{op=\"normalize\",mean=[0.5],std=[0.5]}", "{op=\"normalize\",mean=[0.5,0.5,0.5],std=[0.5,0.5,0.5]}"),
      "");
  EXPECT_EQ(refusal("{op=\"normalize\",preset=\"half\"}", ""),
            "[transforms] train and eval normalize differently (mean [0.5] and std [0.5]; none), but a model "
            "has one normalisation; give both lists the same normalize step");
  EXPECT_NE(refusal("{op=\"normalize\",preset=\"cifar10\"}", "{op=\"normalize\",preset=\"cifar100\"}"), "");
  EXPECT_NE(testing::error_text<UsageError>([&] {
              make_model(make_config(kNormalize, kNormalize), ImageShape{1, 8, 8, 5});
            }).find("3 means, but the images have 1 channels"),
            std::string::npos);
}

TEST(MakeModel, PixelsAreFloatingPointNumbers) {
  const auto model = make_model(make_config("", ""), kColour);
  EXPECT_NE(testing::error_text([&] {
              model->forward({torch::zeros({1, 3, 8, 8}, torch::kByte)});
            }).find("divide bytes by 255"),
            std::string::npos);
}

TEST(CloneModel, KeepsWhatIsFrozenAndTheNumberType) {
  auto model = make_model(make_config(kNormalize, kNormalize), kColour);
  initialize(*model, 1);
  model->to(torch::kDouble);
  model->named_parameters()["head.bias"].set_requires_grad(false);
  const auto copy = clone_model(*model);
  EXPECT_EQ(copy->named_parameters()["head.weight"].scalar_type(), torch::kDouble);
  EXPECT_FALSE(copy->named_parameters()["head.bias"].requires_grad());
  EXPECT_TRUE(copy->named_parameters()["head.weight"].requires_grad());
  EXPECT_TRUE(copy->named_parameters()["head.weight"].is_leaf());
  EXPECT_TRUE(clone_model(*copy)->pixel_statistics() == model->pixel_statistics());
}

TEST(CloneModel, KeepsSettingsThatAScheduleHasMoved) {
  Json resolved = make_config("", "");
  resolved["moe"]["blocks"] = Json{0};
  const auto model = make_model(resolved, kColour);
  const auto factors = [](const ImageModel& of) {
    std::vector<double> all;
    for_each_router_owner(of, [&](HasRouter& owner) { all.push_back(owner.policy().capacity.factor); });
    return all;
  };
  const std::vector<double> made = factors(*model);
  ASSERT_EQ(made.size(), 1u);
  for_each_router_owner(*model, [](HasRouter& owner) { owner.policy().capacity.factor = 7.5; });
  EXPECT_NE(made[0], 7.5);
  EXPECT_EQ(factors(*clone_model(*model)), (std::vector<double>{7.5}));
}

TEST(CloneModel, RefusesModelsItCannotMakeAgain) {
  const auto by_hand = models().make("mlp", Json::object(), "model", ModelContext{kColour, default_moe_spec()});
  EXPECT_NE(testing::error_text([&] { clone_model(*by_hand); }).find("only models built by make_model() can be copied"),
            std::string::npos);
  auto packed = make_model(make_config("", ""), kColour);
  packed->named_parameters()["head.bias"].set_data(torch::empty({0}));
  EXPECT_NE(testing::error_text([&] { clone_model(*packed); }).find("head.bias has shape [0], but was built with"),
            std::string::npos);
}

TEST(WithLaterBuffers, CompletesFilesWithoutAndRefusesTheImpossible) {
  const auto model = make_model(make_config(kNormalize, kNormalize), kColour);
  NamedTensors weights = named_weights(*model);
  EXPECT_EQ(add_missing_buffers(weights, *model).size(), weights.size());
  NamedTensors earlier = weights;
  std::erase_if(earlier, [](const auto& entry) { return is_pixel_statistics(entry.first); });
  ASSERT_EQ(earlier.size() + 2, weights.size());
  EXPECT_EQ(add_missing_buffers(earlier, *model).size(), weights.size());
  for (const double std : {0., -0.5, std::numeric_limits<double>::quiet_NaN()}) {
    NamedTensors bad = weights;
    for (auto& [name, tensor] : bad)
      if (name == "normalize.std") tensor = torch::full({3}, std, torch::kDouble);
    EXPECT_NE(testing::error_text([&] { add_missing_buffers(bad, *model); }).find("must be finite and above 0"),
              std::string::npos);
  }
}

// A count of 2^40 leaves the momentum as it is: kept_fraction() is 0.99 to the last digit.
TEST(WithLaterBuffers, CountsTheBatchesOfFilesThatDoNot) {
  Json resolved = make_config("", "");
  resolved["model"] = {{"name", "wide_resnet"}, {"widen", 1}};
  const auto model = make_model(resolved, kColour);
  NamedTensors weights = named_weights(*model), earlier = weights;
  std::erase_if(earlier, [](const auto& entry) { return entry.first.ends_with("num_batches_tracked"); });
  ASSERT_EQ(earlier.size() + 7, weights.size());  // two norms in each of three blocks, and the last
  NamedTensors complete = add_missing_buffers(earlier, *model);
  ASSERT_EQ(complete.size(), weights.size());
  EXPECT_EQ(complete.back().second.item<int64_t>(), int64_t{1} << 40);
  EXPECT_EQ(kept_fraction({.momentum = 0.99}, complete.back().second.item<int64_t>()), 0.99);
}

}  // namespace sparsight::make_model_test
