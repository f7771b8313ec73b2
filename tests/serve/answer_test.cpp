// Probabilities by hand, and a decision of two images as their answers have it.
#include "sparsight/serve/answer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "sparsight/serve/answer_json.h"
#include "tests/support/small_vit.h"

namespace sparsight::serve {
namespace {

// exp(0), exp(ln 2) and exp(ln 5) are 1, 2 and 5 of 8.
TEST(ClassProbabilities, AreTheSoftmaxOrTheSigmoids) {
  const std::vector<float> logits{0, std::log(2.F), std::log(5.F)};
  const std::vector<double> softmax = class_probabilities(logits, /*sigmoid=*/false);
  for (size_t k = 0; k < 3; ++k) EXPECT_NEAR(softmax[k], (std::vector{1, 2, 5})[k] / 8.0, 1e-7);
  const std::vector<double> sigmoid = class_probabilities(logits, /*sigmoid=*/true);
  for (size_t k = 0; k < 3; ++k) EXPECT_NEAR(sigmoid[k], (std::vector{1 / 2.0, 2 / 3.0, 5 / 6.0})[k], 1e-7);
  EXPECT_EQ(class_probabilities({1000, 1000}, false), (std::vector<double>{0.5, 0.5}));
}

// Two images of three tokens and three experts. Of the second image, token 1 (the batch's 4) loses expert 2 to
// capacity.
engine::Routing two_images() {
  engine::Routing routing;
  routing.start({.images = 2, .per_image = 3, .prefix = 1, .grid_height = 1, .grid_width = 2}, 3);
  const int64_t tokens[] = {0, 1, 2, 3, 4, 4, 5}, experts[] = {0, 1, 1, 2, 2, 0, 0};
  routing.set_assignments(7);
  for (int64_t a = 0; a < 7; ++a) {
    routing.token[a] = tokens[a], routing.expert[a] = experts[a];
    routing.gate[a] = 0.125F * static_cast<float>(a);
  }
  bool* kept = routing.kept.resize(7);
  for (int64_t a = 0; a < 7; ++a) kept[a] = a != 4;
  return routing;
}

TEST(CopyAnswer, HasTheTokensOfItsImageAlone) {
  const engine::Program program = test::make_vit({.routed = 1});
  std::vector<float> logits(2 * test::kVitClasses), features(2 * test::kVitWidth);
  logits[test::kVitClasses] = 3, features[test::kVitWidth] = 5;
  const std::vector<engine::Routing> routings = [] {
    std::vector<engine::Routing> one;
    one.push_back(two_images());
    return one;
  }();
  const engine::Answer answer{logits.data(), features.data(), routings};
  const ImageAnswer second = copy_answer(program, answer, 1, 2, {.features = true, .chosen = true});
  EXPECT_EQ(second.problem, "");
  EXPECT_EQ(second.logits.at(0), 3);
  EXPECT_EQ(second.features.at(0), 5);
  ASSERT_EQ(second.layers.size(), 1U);
  EXPECT_EQ(second.layers[0].counts, (std::vector<int64_t>{2, 0, 1}));
  using Gates = std::vector<ExpertGate>;
  EXPECT_EQ(second.layers[0].chosen, (std::vector<Gates>{{{2, 0.375F}}, {{0, 0.625F}}, {{0, 0.75F}}}));
  EXPECT_EQ(routing_json(second).dump(),
            R"({"blocks.5.mlp":{"experts":3,"tokens_per_image":3,"prefix_tokens":1,"grid":[1,2],)"
            R"("chosen":[[[2,0.375]],[[0,0.625]],[[0,0.75]]]}})");
  EXPECT_EQ(copy_answer(program, answer, 0, 2, {}).layers[0].counts, (std::vector<int64_t>{1, 2, 0}));
}

TEST(CopyAnswer, NamesAnOutputThatIsNotFinite) {
  const engine::Program program = test::make_vit({.routed = 0});
  const std::vector<float> logits(test::kVitClasses, NAN), features(test::kVitWidth);
  EXPECT_NE(copy_answer(program, {logits.data(), features.data(), {}}, 0, 1, {}).problem.find("not finite"),
            std::string::npos);
}

// Classes 1 and 2 are equally probable: the lower label comes first.
TEST(PredictionSummary, OrdersTheClasses) {
  const ServedModel model{"vit", std::make_shared<const engine::Program>(test::small_vit())};
  ImageAnswer answer{.logits = std::vector<float>(test::kVitClasses)};
  answer.logits[1] = answer.logits[2] = 4, answer.logits[7] = 9;
  const PredictionSummary summary = prediction_summary(model, answer, "cat.png", 3);
  ASSERT_EQ(summary.classes.size(), 3U);
  EXPECT_EQ(summary.classes[0].label, 7);
  EXPECT_EQ(summary.classes[1].label, 1);
  EXPECT_EQ(summary.classes[2].label, 2);
}

}  // namespace
}  // namespace sparsight::serve
