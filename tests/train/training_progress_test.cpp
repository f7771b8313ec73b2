#include "sparsight/train/training_progress.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"

namespace sparsight::training_progress_test {
namespace {

TEST(TrainingProgress, ComesBackWhole) {
  TrainingProgress progress{12, 10, 0.75, 8, 1, 3.5, {64, 0.25, {}}};
  progress.window.means.add("loss", 1.0 / 3, 2);
  progress.window.means.add("losses/load", 0.5, 2);
  const TrainingProgress back = training_progress_from(Json::parse(to_json(progress).dump()));
  EXPECT_EQ(to_json(back), to_json(progress));
  EXPECT_EQ(to_json(back)["window"]["means"]["loss"], (Json{1.0 / 3, 2.0}));
}

TEST(TrainingProgress, ReadsWindowsOfEarlierVersions) {
  Json json = to_json(TrainingProgress{12, 10, 0.75, 8, 1, 3.5, {}});
  json["window"] = Json::parse(R"({"batches": 2, "images": 64, "correct": 40, "loss": 1.25, "task_loss": 1.0,
                                   "seconds": 0.25, "auxiliary": {"load": 0.5}})");
  const LogWindow window = training_progress_from(json).window;
  EXPECT_EQ(window.images, 64);
  Json line;
  window.means.write_to(line);  // 1.25 / 2, 1 / 2, 0.5 / 2 and 40 / 64
  EXPECT_EQ(line, Json::parse(R"({"loss": 0.625, "task_loss": 0.5, "losses": {"load": 0.25}, "accuracy": 0.625})"));
}

TEST(TrainingProgress, RefusesWhatIsDamaged) {
  Json json = to_json(TrainingProgress{});
  json["window"]["means"] = {{"loss", {1}}};
  EXPECT_THROW(training_progress_from(json), Error);
  json = to_json(TrainingProgress{});
  json.erase("best_step");
  EXPECT_THROW(training_progress_from(json), Error);
  EXPECT_THROW(training_progress_from(Json("text")), Error);
}

}  // namespace
}  // namespace sparsight::training_progress_test
