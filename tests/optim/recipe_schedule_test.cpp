// The schedules of Daxberger et al. 2023 ("Mobile V-MoEs"), which are those of DeiT and of the vision transformer.
#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

#include "sparsight/optim/schedule.h"
#include "tests/support/errors.h"

namespace sparsight::recipe_schedule_test {
namespace {

Schedule cosine(const Json& settings, TrainingLength length) {
  return schedules().make("cosine", settings, "schedule", length);
}

constexpr int64_t kSteps = 1251;  // per epoch of ImageNet with batches of 1024
constexpr double kDeitRate = 1e-3;

Schedule deit(int64_t steps_per_epoch = kSteps) {
  return cosine({{"warmup_epochs", 5},
                 {"warmup_from", 1e-6 / kDeitRate},
                 {"final_factor", 1e-5 / kDeitRate},
                 {"decay_from", "start"},
                 {"per_epoch", true}},
                {steps_per_epoch, 300 * steps_per_epoch});
}

double deit_rate(int64_t epoch) { return kDeitRate * deit()(epoch * kSteps); }

TEST(RecipeSchedule, M31_DeitsRatesByHand) {
  EXPECT_NEAR(deit_rate(0), 1e-6, 1e-18);
  EXPECT_NEAR(deit_rate(1), 2.008e-4, 1e-15);  // 1e-6 + 9.99e-4 / 5
  EXPECT_NEAR(deit_rate(4), 8.002e-4, 1e-15);
  EXPECT_NEAR(deit_rate(5), 9.993e-4, 5e-8);  // 1e-5 + 4.95e-4 (1 + cos(pi / 60)) = 9.99322e-4
  EXPECT_NEAR(deit_rate(5), 1e-5 + 4.95e-4 * (1 + std::cos(std::numbers::pi / 60)), 1e-15);
  EXPECT_NEAR(deit_rate(150), 5.05e-4, 1e-15);  // the middle of 1e-3 and 1e-5
  EXPECT_NEAR(deit_rate(300), 1e-5, 1e-18);
}

TEST(RecipeSchedule, M31_TheRateChangesOncePerEpoch) {
  const Schedule schedule = deit(10);
  for (const int64_t epoch : {0, 3, 4, 5, 150, 299})
    for (int64_t step = 1; step < 10; ++step)
      EXPECT_EQ(schedule(10 * epoch + step), schedule(10 * epoch)) << epoch << " " << step;
  EXPECT_NE(schedule(10), schedule(9));
}

// What the cosine gave before it could begin with the training: 295 epochs after the warm-up.
TEST(RecipeSchedule, M31_AfterTheWarmUpIsTheDefault) {
  const Schedule schedule = cosine({{"warmup_epochs", 5}, {"final_factor", 0.01}}, {kSteps, 300 * kSteps});
  const double middle = kDeitRate * schedule(150 * kSteps);
  EXPECT_NEAR(middle, 1e-5 + 4.95e-4 * (1 + std::cos(std::numbers::pi * 145 / 295)), 1e-15);
  EXPECT_NEAR(middle, 5.18e-4, 5e-7);
  EXPECT_DOUBLE_EQ(schedule(0), 1.0 / (5 * kSteps));  // from the first step of a warm-up from 0
  EXPECT_DOUBLE_EQ(schedule(5 * kSteps - 1), 1);
}

const Json kVit{{"warmup_steps", 10000}, {"warmup_share", 0.107}};

TEST(RecipeSchedule, M32_WarmsUpOver10000StepsAndEndsAt0) {
  const TrainingLength length{312, 93600};  // 300 epochs of ImageNet with batches of 4096
  const Schedule schedule = cosine(kVit, length);
  EXPECT_NEAR(3e-3 * schedule(0), 3e-7, 1e-18);
  EXPECT_NEAR(3e-3 * schedule(4999), 1.5e-3, 1e-15);
  EXPECT_NEAR(3e-3 * schedule(9999), 3e-3, 1e-15);
  EXPECT_NEAR(3e-3 * schedule(10000), 3e-3, 1e-15);
  EXPECT_NEAR(3e-3 * schedule(10000 + 41800), 1.5e-3, 1e-15);  // half of the 83,600 steps that remain
  EXPECT_NEAR(schedule(93600), 0, 1e-15);
  EXPECT_LT(schedule(93599), 1e-9);
}

TEST(RecipeSchedule, M32_AShorterTrainingHasAShorterWarmUp) {
  const Schedule schedule = cosine(kVit, {50, 1000});  // 10.7 %: 107 steps
  EXPECT_DOUBLE_EQ(schedule(52), 53.0 / 107);
  EXPECT_DOUBLE_EQ(schedule(106), 1);
  EXPECT_LT(schedule(108), 1);
  EXPECT_EQ(cosine({{"warmup_steps", 50}, {"warmup_share", 0.107}}, {50, 1000})(49), 1);  // shorter already
}

TEST(RecipeSchedule, TheLinearDecayCanBeginWithTheTraining) {
  const Schedule schedule =
      schedules().make("linear", {{"warmup_steps", 10}, {"decay_from", "start"}}, "schedule", {10, 100});
  EXPECT_DOUBLE_EQ(schedule(4), 0.5);
  EXPECT_DOUBLE_EQ(schedule(10), 0.9);
  EXPECT_DOUBLE_EQ(schedule(50), 0.5);
}

TEST(RecipeSchedule, TwoLengthsOfTheWarmUpAreRefused) {
  EXPECT_EQ(testing::error_text<UsageError>([] {
              cosine({{"warmup_epochs", 1}, {"warmup_steps", 5}}, {10, 100});
            }),
            "schedule.warmup_epochs and schedule.warmup_steps both set the length of the warm-up; set one to 0");
}

}  // namespace
}  // namespace sparsight::recipe_schedule_test
