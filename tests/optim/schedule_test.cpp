#include "sparsight/optim/schedule.h"

#include <gtest/gtest.h>

namespace sparsight::schedule_test {
namespace {

Schedule make(const std::string& name, const Json& settings, TrainingLength length) {
  return schedules().make(name, settings, "schedule", length);
}

TEST(Schedule, WarmsUpLinearlyFromTheFirstStep) {
  const Schedule schedule = make("constant", {{"warmup_epochs", 0.5}}, {8, 80});  // 4 steps of warm-up
  EXPECT_DOUBLE_EQ(schedule(0), 0.25);
  EXPECT_DOUBLE_EQ(schedule(3), 1.0);
  EXPECT_DOUBLE_EQ(schedule(79), 1.0);
}

TEST(Schedule, CosineIsHalfWayAtTheMiddle) {
  const Schedule schedule = make("cosine", {{"final_factor", 0.2}}, {10, 100});
  EXPECT_DOUBLE_EQ(schedule(0), 1.0);
  EXPECT_NEAR(schedule(50), 0.6, 1e-12);  // 0.2 + 0.8 * 0.5
  EXPECT_NEAR(schedule(25), 0.2 + 0.8 * 0.5 * (1 + 0.7071067811865476), 1e-12);
}

TEST(Schedule, LinearReachesItsEnd) {
  const Schedule schedule = make("linear", {{"warmup_epochs", 1}}, {10, 110});
  EXPECT_DOUBLE_EQ(schedule(10), 1.0);
  EXPECT_NEAR(schedule(60), 0.5, 1e-12);
  EXPECT_NEAR(schedule(109), 0.01, 1e-12);
}

TEST(Schedule, StepMultipliesAtEachMilestone) {
  const Schedule schedule = make("step", {{"milestones", {2, 3}}, {"gamma", 0.1}}, {10, 100});
  EXPECT_DOUBLE_EQ(schedule(19), 1.0);
  EXPECT_NEAR(schedule(20), 0.1, 1e-15);
  EXPECT_NEAR(schedule(30), 0.01, 1e-15);
}

// The factors of Shazeer et al. 2017 for step t, counted from 1: plain numbers without a gradient.
TEST(Schedule, S41_InverseSqrtReproducesTheLanguageModels) {
  const Schedule schedule = make("inverse_sqrt", {{"warmup_steps", 1000}}, {100, 27000});
  const auto factor = [&](int64_t t) { return schedule(t - 1); };
  EXPECT_DOUBLE_EQ(factor(1), 0.001);
  EXPECT_DOUBLE_EQ(factor(500), 0.5);
  EXPECT_DOUBLE_EQ(factor(1000), 1);
  EXPECT_DOUBLE_EQ(factor(4000), 0.5);         // sqrt(1000 / 4000)
  EXPECT_NEAR(factor(27000), 0.192450, 5e-7);  // sqrt(1 / 27)
}

TEST(Schedule, S41_InverseSqrtReproducesTheTranslationModels) {
  const Schedule schedule = make("inverse_sqrt", {{"warmup_steps", 2000}, {"constant_until", 10000}}, {100, 40000});
  const auto factor = [&](int64_t t) { return schedule(t - 1); };
  EXPECT_DOUBLE_EQ(factor(1000), 0.5);
  EXPECT_DOUBLE_EQ(factor(2000), 1);
  EXPECT_DOUBLE_EQ(factor(6000), 1);
  EXPECT_DOUBLE_EQ(factor(10000), 1);
  EXPECT_DOUBLE_EQ(factor(40000), 0.5);  // sqrt(10000 / 40000)
}

TEST(Schedule, InverseSqrtRefusesAConstantPartBeforeTheEndOfTheWarmUp) {
  EXPECT_THROW(make("inverse_sqrt", {{"warmup_steps", 100}, {"constant_until", 50}}, {10, 100}), UsageError);
}

}  // namespace
}  // namespace sparsight::schedule_test
