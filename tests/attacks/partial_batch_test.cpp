// Attacks on some images of a batch, what they do to the others, and transfers between models.
#include <gtest/gtest.h>
#include <torch/types.h>

#include "sparsight/attacks/partial_batch.h"
#include "sparsight/attacks/pgd.h"
#include "sparsight/attacks/transfer.h"
#include "tests/attacks/routed_model.h"
#include "tests/support/errors.h"
#include "tests/support/near.h"
#include "tests/support/thread_count.h"

namespace sparsight::partial_batch_test {
namespace {

Pgd capacity_attack() {
  PgdOptions options;
  options.steps = 15;
  options.keep = "loss";
  options.objective.router.task_weight = 0;
  options.objective.routing.loss = "drops";
  return Pgd(options, {{Norm::linf, .2, {}}, 3});
}

at::Tensor longs(std::vector<int64_t> values) { return torch::tensor(values, torch::kLong); }

}  // namespace

// A model in which the first image of the batch shifts the others: by 1 if its pixel is above 0.5.
TEST(PartialBatchModel, A25_DamageIsCountedOnTheImagesThatWereNotAttacked) {
  AttackedFunction model(
      [](const at::Tensor& x, const AttackPass&) {
        const at::Tensor shift = (x.select(0, 0) > 0.5).to(torch::kDouble);
        ModelOutput output;
        output.logits = torch::cat({x, 0.6 - 0.5 * shift.expand_as(x)}, 1);
        return output;
      },
      false);
  // Class 0 where the pixel is above 0.6, after the shift above 0.1.
  const at::Tensor x = torch::tensor({{.4}, {.7}, {.3}, {.05}, {.2}}, torch::kDouble);
  const AttackBatch batch{x, {longs({1, 0, 1, 1, 0})}};
  at::Tensor pixels = x.clone();
  pixels[0] = .6;
  const BatchDamage damage = batch_damage(model, batch, pixels, longs({1, 0, 0, 0, 0}).to(torch::kBool));
  EXPECT_EQ(damage.others, 4);
  EXPECT_EQ(damage.correct_before, 3);  // 1, 2, 3
  EXPECT_EQ(damage.correct_after, 3);   // 1, 3, 4
  EXPECT_EQ(damage.changed, 2);         // 2, 4
  EXPECT_EQ(damage.dropped_before, 0);
}

TEST(PartialBatchModel, OneImageTakesSlotsOfTheOthers) {
  AttackedImageModel model(test::routed_vit({"capacity.eval_factor=1"}));
  const AttackBatch batch = test::routed_images(model, 4);
  const at::Tensor pixels = attack_part_of_batch(capacity_attack(), model, batch, longs({0}));
  EXPECT_TRUE(torch::equal(pixels.slice(0, 1), batch.pixels.slice(0, 1)));
  EXPECT_FALSE(torch::equal(pixels[0], batch.pixels[0]));
  const BatchDamage damage = batch_damage(model, batch, pixels, longs({1, 0, 0, 0}).to(torch::kBool));
  EXPECT_EQ(damage.others, 3);
  EXPECT_EQ(damage.correct_before, 3);
  EXPECT_GT(damage.dropped_after, damage.dropped_before);
  // The other images' logits have changed although their pixels have not.
  const torch::NoGradGuard no_grad;
  const at::Tensor before = model.forward(batch.pixels, {batch.image, 0}).logits,
                   after = model.forward(pixels, {batch.image, 0}).logits;
  EXPECT_FALSE(torch::equal(before.slice(0, 1), after.slice(0, 1)));
  double dropped = 0, chosen = 0;
  for (const Routing& r : model.forward(pixels, {batch.image, 0}).routings) {
    dropped += static_cast<double>((~r.kept).sum().item<int64_t>());
    chosen += static_cast<double>(r.kept.numel());
  }
  EXPECT_NEAR(damage.dropped_after, dropped / chosen, 1e-12);
}

TEST(PartialBatchModel, WithoutALimitNoOtherImageIsDamaged) {
  AttackedImageModel model(test::routed_vit());
  const AttackBatch batch = test::routed_images(model, 5);
  PgdOptions options;
  options.steps = 5;
  const Pgd attack(options, {{Norm::linf, .1, {}}, 3});
  const at::Tensor pixels = attack_part_of_batch(attack, model, batch, longs({1, 3}));
  // The same images alone.
  EXPECT_TRUE(
      test::near(pixels.index_select(0, longs({1, 3})), attack.run(model, batch.select(longs({1, 3}))).pixels, 1e-9));
  const BatchDamage damage = batch_damage(model, batch, pixels, longs({0, 1, 0, 1, 0}).to(torch::kBool));
  EXPECT_EQ(damage.others, 3);
  EXPECT_EQ(damage.correct_after, damage.correct_before);
  EXPECT_EQ(damage.changed, 0);
  PartialBatchModel among(model, batch, longs({1, 3}));
  EXPECT_NE(testing::error_text([&] { among.forward(batch.pixels, {}); }).find("all of its 2 images"),
            std::string::npos);
}

// With two threads, each of which has 9 of the 18 images, and one of the two that are attacked.
TEST(PartialBatchModel, GradientsOfImagesThatThreadsShareAreThoseOfTheImagesAlone) {
  AttackedImageModel model(test::routed_vit({"moe.blocks=[]"}));
  const AttackBatch batch = test::routed_images(model, 18);
  const at::Tensor index = longs({3, 14});
  const auto gradient = [&](AttackedModel& of, const at::Tensor& pixels, int threads) {
    const test::ThreadCount count(threads);
    const at::Tensor x = pixels.detach().requires_grad_(true);
    of.forward(x, {batch.image.index_select(0, index), 0}).logits.square().sum().backward();
    return x.grad();
  };
  PartialBatchModel among(model, batch, index);
  const at::Tensor pixels = batch.pixels.index_select(0, index), alone = gradient(model, pixels, 1);
  EXPECT_GT(alone.abs().amax({1, 2, 3}).min().item<double>(), 0);
  for (const int threads : {1, 2}) EXPECT_TRUE(test::near(gradient(among, pixels, threads), alone, 1e-9)) << threads;
}

TEST(Transfer, EvaluatesTheImagesOfOneModelOnAnother) {
  AttackedImageModel routed(test::routed_vit()), dense(test::routed_vit({"moe.blocks=[]"}));
  const AttackBatch batch = test::routed_images(routed, 12);
  PgdOptions options;
  options.steps = 10;
  const Pgd attack(options, {{Norm::linf, .1, {}}, 3});
  const auto classified = [&](AttackedModel& model, const at::Tensor& x) {
    const torch::NoGradGuard no_grad;
    return classified_correctly(model.forward(x, {batch.image, 0}).logits, batch.labels.label);
  };
  for (const bool from_dense : {true, false}) {
    AttackedImageModel &source = from_dense ? dense : routed, &target = from_dense ? routed : dense;
    const TransferResult found = transfer(attack, source, target, batch);
    EXPECT_TRUE(torch::equal(found.source.pixels, attack.run(source, batch).pixels));
    EXPECT_TRUE(torch::equal(found.target_clean, classified(target, batch.pixels)));
    EXPECT_TRUE(torch::equal(found.target_correct, classified(target, found.source.pixels)));
  }
  // To itself it is the attack, which fools some of the images, all of which are correct when clean.
  const TransferResult itself = transfer(attack, routed, routed, batch);
  EXPECT_TRUE(torch::equal(itself.target_correct, itself.source.correct));
  EXPECT_EQ(itself.target_clean.sum().item<int64_t>(), 12);
  const double fooled = 12 - itself.source.correct.sum().item<double>();
  EXPECT_GT(fooled, 0);
  EXPECT_NEAR(itself.success_rate(), fooled / 12, 1e-12);
  AttackedImageModel shifted(test::routed_vit(), {.range = {-1, 1}});
  EXPECT_NE(testing::error_text([&] { transfer(attack, routed, shifted, batch); }).find("one range"),
            std::string::npos);
}

}  // namespace sparsight::partial_batch_test
