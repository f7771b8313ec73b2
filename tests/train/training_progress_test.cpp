#include "sparsight/train/training_progress.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"

namespace sparsight::training_progress_test {
namespace {

TEST(TrainingProgress, ComesBackWhole) {
  TrainingProgress progress{12, 10, 0.75, 8, 1, 3.5, {2, 64, 40, 1.25, 1.0, 0.25, {{"load", 0.5}}}};
  const TrainingProgress back = training_progress_from(Json::parse(to_json(progress).dump()));
  EXPECT_EQ(to_json(back), to_json(progress));
  EXPECT_EQ(back.window.auxiliary.at("load"), 0.5);
}

TEST(TrainingProgress, RefusesWhatIsDamaged) {
  Json json = to_json(TrainingProgress{});
  json.erase("best_step");
  EXPECT_THROW(training_progress_from(json), Error);
  EXPECT_THROW(training_progress_from(Json("text")), Error);
}

TEST(LogWindow, AddsUp) {
  LogWindow sum{1, 32, 10, 2.0, 1.5, 0.5, {{"load", 0.25}}};
  sum.add({1, 16, 8, 1.0, 0.5, 0.25, {{"load", 0.25}, {"importance", 1.0}}});
  EXPECT_EQ(sum.images, 48);
  EXPECT_EQ(sum.correct, 18);
  EXPECT_DOUBLE_EQ(sum.loss, 3.0);
  EXPECT_DOUBLE_EQ(sum.seconds, 0.75);
  EXPECT_DOUBLE_EQ(sum.auxiliary.at("load"), 0.5);
  EXPECT_DOUBLE_EQ(sum.auxiliary.at("importance"), 1.0);
}

}  // namespace
}  // namespace sparsight::training_progress_test
