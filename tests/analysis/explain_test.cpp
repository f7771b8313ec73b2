#include "sparsight/analysis/explain.h"

#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "sparsight/moe/finish_routing.h"

namespace sparsight::explain_test {
namespace {

// Calls an image class 1 where it is bright on average, and routes each of its 2 x 2 patches of one pixel to expert 1
// where the pixel is bright, else to expert 0.
class BrightnessModel : public ImageModel {
 public:
  BrightnessModel() : ImageModel({1, 2, 2, 2}) {}
  at::Tensor classify(const at::Tensor& features) override { return features; }

 protected:
  ModelOutput run(const ModelInput& input) override {
    EXPECT_FALSE(at::GradMode::is_enabled());
    const at::Tensor pixels = input.images.mean(1).flatten(1);  // [B,4]
    const at::Tensor mean = pixels.mean(1);
    ModelOutput output;
    output.features = at::stack({1 - mean, mean}, 1) * 10;
    const int64_t tokens = pixels.numel();
    Routing routing;
    routing.layer = "blocks.0.mlp";
    routing.layout = {input.images.size(0), 4, 0, 2, 2};
    routing.tokens = tokens;
    routing.experts = 2;
    routing.per_token = 1;
    routing.token = at::arange(tokens, at::kLong);
    routing.expert = (pixels.flatten() > 0.5).to(at::kLong);
    routing.rank = at::zeros({tokens}, at::kLong);
    routing.gate = at::ones({tokens});
    finish_routing(routing);
    routing.scores = at::full({tokens, 2}, 0.5);
    output.routings.push_back(routing);
    return output;
  }
};

Predictor make_predictor(BrightnessModel& model) {
  return [&model](const ModelInput& input) { return model.forward(input); };
}

// An image [1,2,2] of the given pixels.
ExplainItem item(const std::string& id, int64_t label, std::vector<uint8_t> pixels) {
  return {label, [id, pixels]() mutable {
            Sample sample;
            sample.image = at::from_blob(pixels.data(), {1, 2, 2}, at::kByte).clone();
            sample.id = id;
            return sample;
          }};
}

at::Tensor plain_pixels(const at::Tensor& image) { return image.to(at::kFloat) / 255; }

TEST(Explain, CountsAndPictures) {
  BrightnessModel model;
  const std::vector<ExplainItem> items = {item("dark", 0, {0, 0, 0, 255}), item("bright", 1, {255, 255, 255, 0}),
                                          item("wrong", 0, {255, 255, 255, 255}), item("unknown", -1, {0, 0, 0, 0})};
  ExplainOptions options;
  options.examples = 2;
  options.batch = 3;
  const Explanation result = explain_images(make_predictor(model), items, plain_pixels, {"night", "day"}, options);
  EXPECT_EQ(result.images, 4);
  EXPECT_EQ(result.labelled, 3);
  EXPECT_DOUBLE_EQ(*result.accuracy(), 2.0 / 3);
  // Expert 0 got 3 + 1 + 0 + 4 pixels, expert 1 the other 8.
  EXPECT_EQ(result.layers[0]["load"], Json({8, 8}));
  // Class 0: "dark" (3, 1) and "wrong" (0, 4), class 1: "bright" (1, 3); "unknown" is of no class.
  EXPECT_FALSE(result.by_predicted_class());
  EXPECT_EQ(result.class_expert["blocks.0.mlp"], Json::parse("[[3, 5], [1, 3]]"));
  EXPECT_EQ(result.layers[0]["class_information"]["images"], 3);
  ASSERT_EQ(result.examples.size(), 2u);  // one of each class in turn, those without label first; of two the second
  EXPECT_EQ(result.examples[0].id, "wrong");
  EXPECT_EQ(result.examples[1].id, "unknown");
  EXPECT_EQ(result.examples[0].truth, "night");
  EXPECT_EQ(result.examples[0].predicted, "day");
  // Mean 1: logits 0 and 10, softmax 1 / (1 + exp(-10)).
  EXPECT_NEAR(result.examples[0].probability, 1 / (1 + std::exp(-10.0)), 1e-6);
  EXPECT_EQ(result.examples[1].truth, "");
  EXPECT_EQ(result.examples[0].picture.sizes(), (std::vector<int64_t>{3, 2, 2}));
  EXPECT_EQ(result.examples[0].picture[2][1][1].item<int>(), 255);
  EXPECT_EQ(result.examples[0].caption, "blocks.0.mlp");
  EXPECT_EQ(result.examples[0].panels.size(0), 3);
}

TEST(Explain, WithoutLabelsThePredictedClassesCount) {
  BrightnessModel model;
  const std::vector<ExplainItem> items = {item("dark", -1, {0, 0, 0, 255}), item("bright", -1, {255, 255, 255, 0})};
  const Explanation result = explain_images(make_predictor(model), items, plain_pixels, {"night", "day"});
  EXPECT_TRUE(result.by_predicted_class());
  EXPECT_EQ(result.class_expert["blocks.0.mlp"], Json::parse("[[3, 1], [1, 3]]"));
  EXPECT_FALSE(result.layers[0].contains("class_information"));
}

// The bright pixel goes to expert 1, wherever it is; the attribute says where.
TEST(Explain, P76_WhoTookThePatchesThatMatter) {
  BrightnessModel model;
  std::vector<ExplainItem> items = {item("dark", 0, {0, 0, 0, 255}), item("bright", 1, {255, 255, 0, 0})};
  for (ExplainItem& each : items)
    each.read = [read = each.read] {
      Sample sample = read();
      sample.attributes = {7, sample.id == "dark" ? 3.f : 2.f};
      return sample;
    };
  ExplainOptions options;
  options.attributes = {"weight", "cell"};
  options.cell_grid = {2, 2};
  const Json reports =
      explain_images(make_predictor(model), items, plain_pixels, {"night", "day"}, options).patch_routing;
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0]["of"], "cell");
  EXPECT_EQ(reports[0]["layer"], "blocks.0.mlp");
  EXPECT_EQ(reports[0]["classes"][0]["reached"], Json({0., 1.}));
  EXPECT_EQ(reports[0]["classes"][1]["reached"], Json({1., 0.}));
  EXPECT_TRUE(explain_images(make_predictor(model), items, plain_pixels, {}).patch_routing.empty());
}

TEST(Explain, ExamplesAreSpreadOverClasses) {
  std::vector<ExplainItem> items;
  for (int64_t i = 0; i < 30; ++i) items.push_back({i / 10, nullptr});
  // Two of class 0: the middles of the halves of its ten; of the others the middle.
  EXPECT_EQ(spread_over_classes(items, 4), (std::vector<size_t>{2, 7, 15, 25}));
  EXPECT_EQ(spread_over_classes(items, 100).size(), 30u);
  EXPECT_TRUE(spread_over_classes({}, 3).empty());
}

TEST(Explain, NoImagesOrImagesOfTwoSizes) {
  BrightnessModel model;
  const auto of_side = [](int64_t side) {
    return ExplainItem{0, [side] {
                         Sample sample;
                         sample.image = at::zeros({1, side, side}, at::kByte);
                         return sample;
                       }};
  };
  EXPECT_THROW(explain_images(make_predictor(model), {of_side(2), of_side(3)}, plain_pixels, {}), Error);
  EXPECT_THROW(explain_images(make_predictor(model), {}, plain_pixels, {}), Error);
}

}  // namespace
}  // namespace sparsight::explain_test
