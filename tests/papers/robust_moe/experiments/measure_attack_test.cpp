// What is measured of an attack, on the model of the generated task.
#include "sparsight/papers/robust_moe/experiments/measure_attack.h"

#include <cmath>

#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sparsight/attacks/attacked_image_model.h"
#include "sparsight/attacks/register_attacks.h"
#include "sparsight/papers/robust_moe/experiments/generated_task.h"

namespace sparsight::robust_moe::measure_attack_test {
namespace {

constexpr GeneratedTraining kShort{60, 5, 64};

AttackBatch images(int64_t count) {
  const Batch batch = generated_images(1, "test", 0, count);
  return {batch.images, {batch.labels}, at::arange(count, at::kLong)};
}

MeasuredAttack pgd(double epsilon, int64_t batch = 128) {
  const AttackContext context{.threat = {.epsilon = epsilon / 255}, .seed = 1};
  return {.attack = attacks().make("pgd", Json{{"steps", 8}}, "attack", context), .batch = batch};
}

double measured_value(const Json& measured, const char* key) { return measured.at(key).get<double>(); }

}  // namespace

TEST(MeasureAttack, A26_EpsilonZeroChangesNothing) {
  const Json measured = measure_attack(train_on_generated(4, false, 1, kShort), images(100), pgd(0));
  EXPECT_EQ(measured.at("clean_error"), measured.at("robust_error"));
  for (const char* key : {"success", "changed", "largest"}) EXPECT_EQ(measured_value(measured, key), 0) << key;
  ASSERT_EQ(measured.at("layers").size(), 2u);
  for (const Json& layer : measured.at("layers")) {
    EXPECT_EQ(layer.at("change"), 0);
    EXPECT_EQ(layer.at("entropy"), layer.at("attacked_entropy"));
  }
}

TEST(MeasureAttack, CountsWhatTheAttackDid) {
  const auto model = train_on_generated(4, false, 1, kShort);
  const AttackBatch batch = images(100);
  const Json measured = measure_attack(model, batch, pgd(8));
  // The same by hand: misclassified images before and after.
  AttackedImageModel under_attack(model);
  const AttackResult result = pgd(8).attack->run(under_attack, batch);
  const double robust = result.correct.sum().item<double>();
  const double clean = still_correct(under_attack, batch, batch.pixels, 0).sum().item<double>();
  EXPECT_DOUBLE_EQ(measured_value(measured, "robust_error"), 100 - robust);
  EXPECT_DOUBLE_EQ(measured_value(measured, "clean_error"), 100 - clean);
  EXPECT_NEAR(measured_value(measured, "success"), 100 * (clean - robust) / clean, 1e-9);  // strict: none is un-fooled
  EXPECT_GT(measured_value(measured, "attacked_loss"), measured_value(measured, "clean_loss"));
  EXPECT_NEAR(measured_value(measured, "largest"), 8, 1e-4);
  EXPECT_EQ(measured_value(measured, "gradients"), 8);
  EXPECT_LT(measured_value(measured, "robust_low"), measured_value(measured, "robust_error"));
  for (const Json& layer : measured.at("layers")) {
    EXPECT_GT(layer.at("change").get<double>(), 0);
    EXPECT_NEAR(layer.at("chance").get<double>(), 0.611111, 1e-6);  // E = 4, K = 2
    EXPECT_EQ(layer.at("dropped"), 0);
    EXPECT_EQ(layer.at("change"), layer.at("change_public"));
  }
  // Without a capacity limit the numbers do not depend on the batch.
  const Json in_parts = measure_attack(model, batch, pgd(8, 17));
  for (const char* key : {"robust_error", "changed"}) EXPECT_EQ(in_parts.at(key), measured.at(key));
  EXPECT_NEAR(in_parts.at("layers")[1].at("change").get<double>(), measured.at("layers")[1].at("change").get<double>(),
              1e-9);
}

// Both experts see every token.
TEST(MeasureAttack, A41_OfTwoExpertsTheRoutingNeverChanges) {
  const auto model = train_on_generated(2, false, 1, kShort);
  for (const double epsilon : {1.0, 8.0, 32.0}) {
    const Json measured = measure_attack(model, images(60), pgd(epsilon));
    for (const Json& layer : measured.at("layers")) EXPECT_EQ(layer.at("change"), 0);
  }
}

// Training on images under attack costs clean accuracy and keeps accuracy and routing under attack.
TEST(MeasureAttack, A55_AdversarialTrainingTradesCleanErrorsForRobustOnesAndSteadiesTheRouting) {
  constexpr GeneratedTraining kTraining{200, 100, 64};
  const auto standard = train_on_generated(8, false, 1, kTraining),
             adversarial = train_on_generated(8, true, 1, kTraining);
  const AttackBatch batch = images(400);
  constexpr double kEpsilon = 8;  // at 12 both err almost always
  const Json before = measure_attack(standard, batch, pgd(kEpsilon)),
             after = measure_attack(adversarial, batch, pgd(kEpsilon));
  EXPECT_GT(measured_value(after, "clean_error"), measured_value(before, "clean_error"));
  EXPECT_LT(measured_value(after, "robust_error"), measured_value(before, "robust_error") - 5);
  ASSERT_EQ(before["layers"].size(), 2u);
  for (size_t i = 0; i < 2; ++i) EXPECT_LT(after["layers"][i]["change"], before["layers"][i]["change"]) << i;
}

TEST(GeneratedTask, ImagesFollowFromSeedPurposeAndStep) {
  const auto pixels = [](uint64_t seed, const char* purpose, uint64_t step) {
    return generated_images(seed, purpose, step, 20).images;
  };
  EXPECT_TRUE(at::equal(pixels(1, "train", 2), pixels(1, "train", 2)));
  EXPECT_FALSE(at::equal(pixels(1, "train", 2), pixels(1, "train", 3)));
  EXPECT_FALSE(at::equal(pixels(1, "train", 2), pixels(1, "test", 2)));
  const at::Tensor x = generated_images(1, "test", 0, 1000).images;
  EXPECT_GE(x.min().item<float>(), 0);
  EXPECT_LE(x.max().item<float>(), 1);
  EXPECT_NEAR(x.mean().item<double>(), .5, .02);
  // 0.16 U(0,1) around each pixel's mean, and noise of 0.1: sqrt(0.01 + 0.16^2 / 12) = 0.110.
  EXPECT_NEAR(x.std().item<double>(), .110, .005);
}

// 60 steps of 64 images: chance is 90 % errors.
TEST(GeneratedTask, TrainingLearnsAndAdversarialTrainingGoesOn) {
  const auto error = [](bool adversarial) {
    return measured_value(measure_attack(train_on_generated(4, adversarial, 1, kShort), images(200), pgd(0)),
                          "clean_error");
  };
  EXPECT_LT(error(false), 75);
  EXPECT_NE(error(true), error(false));
}

}  // namespace sparsight::robust_moe::measure_attack_test
