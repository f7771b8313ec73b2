// Adversarial images of one model on another, and what an attacked image does to the rest of its batch.
#include <ATen/ops/arange.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <nlohmann/json.hpp>

#include "sparsight/analysis/routing_change.h"
#include "sparsight/attacks/partial_batch.h"
#include "sparsight/attacks/register_attacks.h"
#include "sparsight/papers/robust_moe/experiments/generated_task.h"
#include "sparsight/papers/robust_moe/experiments/measure_damage.h"
#include "sparsight/papers/robust_moe/experiments/measure_transfer.h"
#include "tests/attacks/routed_model.h"
#include "tests/support/errors.h"

namespace sparsight::robust_moe::measure_transfer_test {
namespace {

std::shared_ptr<const Attack> pgd(double epsilon, const Json& settings) {
  return attacks().make("pgd", settings, "attack", {.threat = {.epsilon = epsilon}, .seed = 1});
}

std::shared_ptr<const Attack> capacity_attack() {
  return pgd(.2, {{"steps", 10}, {"keep", "loss"}, {"task_weight", 0}, {"routing_loss", "drops"}});
}

double read_value(const Json& measured, const char* key) { return measured.at(key).get<double>(); }

// [B] int64: assignments of each image after capacity.
at::Tensor kept_assignments(const ModelOutput& output) {
  at::Tensor kept = torch::zeros({output.logits.size(0)}, torch::kLong);
  for (const Routing& routing : output.routings) kept += kept_sets(routing).member.sum(std::vector<int64_t>{1, 2});
  return kept;
}

}  // namespace

TEST(MeasureTransfer, CountsTheTargetsErrorsOnTheSourcesImages) {
  constexpr GeneratedTraining kShort{60, 5, 64};
  const auto dense = train_on_generated(1, false, 1, kShort), routed = train_on_generated(4, false, 1, kShort);
  const Batch drawn = generated_images(1, "test", 0, 100);
  const AttackBatch images{drawn.images, {drawn.labels}, at::arange(100, at::kLong)};
  const auto attack = pgd(8. / 255, {{"steps", 8}});
  const Json measured = measure_transfer(dense, routed, images, *attack, 100);
  // The same by hand.
  AttackedImageModel from(dense), to(routed);
  const AttackResult result = attack->run(from, images);
  const at::Tensor before = still_correct(to, images, images.pixels, 0),
                   after = still_correct(to, images, result.pixels, 0);
  const auto count = [](const at::Tensor& which) { return which.sum().item<double>(); };
  EXPECT_EQ(read_value(measured, "images"), 100);
  EXPECT_DOUBLE_EQ(read_value(measured, "clean_error"), 100 - count(before));
  EXPECT_DOUBLE_EQ(read_value(measured, "robust_error"), 100 - count(after));
  EXPECT_NEAR(read_value(measured, "success"), 100 * count(before & ~after) / count(before), 1e-9);
  EXPECT_DOUBLE_EQ(read_value(measured, "source_error"), 100 - count(result.correct));
  EXPECT_GT(read_value(measured, "robust_error"), read_value(measured, "clean_error"));
  EXPECT_LT(read_value(measured, "robust_low"), read_value(measured, "robust_error"));
  // Without a capacity limit the numbers do not depend on the batch.
  EXPECT_EQ(measure_transfer(dense, routed, images, *attack, 17), measured);
}

// Nine images in batches of four: two batches of three others each, and one image that is left out.
TEST(MeasureDamage, CountsWhatTheFirstImageOfEachBatchDoesToTheOthers) {
  const auto model = test::routed_vit({"capacity.eval_factor=1"});
  AttackedImageModel under_attack(model);
  const AttackBatch images = test::routed_images(under_attack, 9);
  const auto attack = capacity_attack();
  const Json measured = measure_damage(model, images, *attack, 4);
  const torch::NoGradGuard no_grad;
  double changed = 0, losers = 0, fewer = 0, kept = 0;
  for (const int64_t first : {0, 4}) {
    const AttackBatch batch = images.select(at::arange(first, first + 4, at::kLong));
    const at::Tensor pixels = attack_part_of_batch(*attack, under_attack, batch, torch::zeros({1}, torch::kLong));
    const ModelOutput before = under_attack.forward(batch.pixels, {batch.image, 0}),
                      after = under_attack.forward(pixels, {batch.image, 0});
    const at::Tensor had = kept_assignments(before), has = kept_assignments(after);
    for (int64_t i = 1; i < 4; ++i) {
      changed += before.logits[i].argmax().item<int64_t>() != after.logits[i].argmax().item<int64_t>();
      const double lost = static_cast<double>(had[i].item<int64_t>() - has[i].item<int64_t>());
      losers += lost > 0 ? 1 : 0;
      fewer += std::max(lost, 0.0);
      kept += had[i].item<double>();
    }
  }
  EXPECT_EQ(read_value(measured, "others"), 6);
  EXPECT_NEAR(read_value(measured, "changed"), 100 * changed / 6, 1e-9);
  EXPECT_NEAR(read_value(measured, "lost"), 100 * losers / 6, 1e-9);
  EXPECT_NEAR(read_value(measured, "lost_assignments"), 100 * fewer / kept, 1e-9);
  EXPECT_GT(losers, 0);
  EXPECT_GT(read_value(measured, "dropped_after"), read_value(measured, "dropped_before"));
}

TEST(MeasureDamage, WithoutALimitThereIsNone) {
  const auto model = test::routed_vit();
  AttackedImageModel under_attack(model);
  const AttackBatch images = test::routed_images(under_attack, 8);
  const auto attack = pgd(.2, {{"steps", 5}});
  const Json measured = measure_damage(model, images, *attack, 4);
  for (const char* key : {"changed", "lost", "lost_assignments", "error_before", "error_after", "dropped_after"})
    EXPECT_EQ(read_value(measured, key), 0) << key;
  EXPECT_NE(testing::error_text([&] {
              measure_damage(model, images, *attack, 9);
            }).find("batches of at least two, got batches of 9 and 8 images"),
            std::string::npos);
}

}  // namespace sparsight::robust_moe::measure_transfer_test
