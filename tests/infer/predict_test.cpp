#include "sparsight/infer/predict.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sparsight/catalogue/model_sections.h"
#include "sparsight/core/config.h"
#include "sparsight/eval/guidance.h"
#include "tests/support/errors.h"

namespace sparsight::predict_test {
namespace {

// Returns the same logits and routing for every image.
struct PredictTestModel : ImageModel {
  PredictTestModel() : ImageModel({3, 4, 5, 3}) {}
  std::vector<double> logits;
  at::Tensor router_logits;  // [1,E]; undefined: none
  at::Tensor classify(const at::Tensor& features) override { return features; }
  ModelOutput run(const ModelInput&) override {
    Routing routing;
    routing.layer = "blocks.1.mlp";
    routing.experts = 4;
    routing.expert = at::tensor({0, 2, 2, 1}, at::kLong);
    routing.kept = at::tensor({1, 1, 1, 0}, at::kLong).to(at::kBool);
    if (router_logits.defined()) {
      routing.clean_logits = router_logits;
      routing.experts = router_logits.size(1);
    }
    ModelOutput out;
    out.features = at::tensor(logits).unsqueeze(0);
    out.routings = {routing};
    return out;
  }
};

LoadedModel model_with(std::vector<double> logits) {
  LoadedModel loaded;
  loaded.data.classes = {"cat", "dog", "owl"};
  loaded.shape = {3, 4, 5, 3};
  auto model = std::make_shared<PredictTestModel>();
  model->logits = std::move(logits);
  loaded.model = model;
  return loaded;
}

const at::Tensor kPredictTestImage = at::zeros({3, 4, 5}, at::kByte);

}  // namespace

// exp(logits) = 1, 6, 3: probabilities 0.1, 0.6, 0.3. Kept assignments go to experts 0, 2, 2: shares 1/3 and 2/3.
TEST(Predict, NamesClassesAndExperts) {
  const LoadedModel model = model_with({0, std::log(6.0), std::log(3.0)});
  const Prediction prediction = predict(model, kPredictTestImage, "a.png", 2);
  ASSERT_EQ(prediction.classes.size(), 2u);
  EXPECT_EQ(prediction.classes[0].name, "dog");
  EXPECT_NEAR(prediction.classes[0].probability, 0.6, 1e-6);
  EXPECT_EQ(prediction.classes[1].label, 2);
  ASSERT_EQ(prediction.layers.size(), 1u);
  ASSERT_EQ(prediction.layers[0].shares.size(), 2u);
  EXPECT_EQ(prediction.layers[0].shares[0].expert, 2);
  EXPECT_NEAR(prediction.layers[0].shares[0].share, 2.0 / 3, 1e-12);
  EXPECT_EQ(to_text(prediction), "a.png: dog 60.0 %, owl 30.0 %\n  blocks.1.mlp: expert 2 66.7 %, expert 0 33.3 %");
  const Json json = to_json(prediction);
  EXPECT_EQ(json["class"], "dog");
  EXPECT_EQ(json["classes"][1]["class"], "owl");
  EXPECT_EQ(json["experts"]["blocks.1.mlp"][1]["expert"], 0);
}

// The routing of PredictTestModel has no logits; with (1, 2, 0) the router takes the image for super-class 1 with
// 0.665241.
TEST(Predict, NamesTheSuperClassThatAGuidedRouterChose) {
  LoadedModel model = model_with({0, std::log(6.0), std::log(3.0)});
  model.data.super_classes = {"pets", "birds", "fish"};
  model.data.super_class_of = {0, 0, 1};
  model.config = resolve(Config::from_text("[moe]\nblocks = [-1]\nexperts = 3\n[losses]\nsuperclass = 0.3", "test"),
                         model_sections());
  model.super_class_of = guiding_super_classes(model.config, model.data);
  auto guided = std::make_shared<PredictTestModel>();
  guided->logits = {0, 2, 1};
  guided->router_logits = at::tensor({1.f, 2.f, 0.f}).view({1, 3});
  model.model = guided;
  const Prediction prediction = predict(model, kPredictTestImage, "a.png", 1);
  ASSERT_TRUE(prediction.layers[0].super_class.has_value());
  EXPECT_EQ(prediction.layers[0].super_class->number, 1);
  EXPECT_NE(to_text(prediction).find("blocks.1.mlp: super-class 1 (birds) 66.5 %, expert 2 66.7 %"), std::string::npos)
      << to_text(prediction);
  const Json json = to_json(prediction)["super_classes"]["blocks.1.mlp"];
  EXPECT_EQ(json["super_class"], "birds");
  EXPECT_EQ(json["number"], 1);
  EXPECT_NEAR(json["probability"].get<double>(), 0.665241, 1e-6);
  EXPECT_FALSE(to_json(predict(model_with({0, 1, 2}), kPredictTestImage, "a.png", 1)).contains("super_classes"));
}

TEST(Predict, NeverNamesMoreClassesThanThereAre) {
  EXPECT_EQ(predict(model_with({0, 1, 2}), kPredictTestImage, "a.png", 100).classes.size(), 3u);
}

TEST(Predict, RefusesOtherShapesAndOutputsThatAreNotFinite) {
  const auto message = [](const LoadedModel& model, const at::Tensor& image) {
    return testing::error_text([&] { predict(model, image, "a.png", 1); });
  };
  EXPECT_NE(message(model_with({0, 1, 2}), at::zeros({1, 9, 5}, at::kByte))
                .find("a.png: the image of 5x9 pixels and 1 channels is not transformed to the 5x4 pixels"),
            std::string::npos);
  EXPECT_NE(message(model_with({0, std::numeric_limits<double>::quiet_NaN(), 2}), kPredictTestImage)
                .find("a.png: the model's output is not finite"),
            std::string::npos);
}

}  // namespace sparsight::predict_test
