#include "sparsight/train/training_progress.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "tests/support/errors.h"

namespace sparsight::training_progress_test {
namespace {

TEST(TrainingProgress, ComesBackWhole) {
  TrainingProgress progress{12, 10, 0.75, 8, 1, 3.5, {64, 0.25, {}}, {2, 48, 0.125, {}}};
  progress.window.means.add("loss", 1.0 / 3, 2);
  progress.window.means.add("losses/load", 0.5, 2);
  progress.since_evaluation.means.add("loss", 0.1, 2);
  const TrainingProgress back = training_progress_from(Json::parse(to_json(progress).dump()), 12);
  EXPECT_EQ(to_json(back), to_json(progress));
  EXPECT_EQ(to_json(back)["window"]["means"]["loss"], (Json{1.0 / 3, 2.0}));
  EXPECT_EQ(back.since_evaluation.steps, 2);
  EXPECT_EQ(back.since_evaluation.images, 48);
  EXPECT_EQ(back.since_evaluation.seconds, 0.125);
  EXPECT_EQ(to_json(back)["since_evaluation"]["means"]["loss"], (Json{0.1, 2.0}));
}

TEST(TrainingProgress, ReadsWindowsOfEarlierVersions) {
  Json json = to_json(TrainingProgress{12, 10, 0.75, 8, 1, 3.5, {}});
  json["window"] = Json::parse(R"({"batches": 2, "images": 64, "correct": 40, "loss": 1.25, "task_loss": 1.0,
                                   "seconds": 0.25, "auxiliary": {"load": 0.5}})");
  json.erase("since_evaluation");
  EXPECT_EQ(training_progress_from(json, 12).since_evaluation.steps, 0);
  const LogWindow window = training_progress_from(json, 12).window;
  EXPECT_EQ(window.images, 64);
  Json line;
  window.means.write_to(line);  // 1.25 / 2, 1 / 2, 0.5 / 2 and 40 / 64
  EXPECT_EQ(line, Json::parse(R"({"loss": 0.625, "task_loss": 0.5, "losses": {"load": 0.25}, "accuracy": 0.625})"));
}

TEST(TrainingProgress, RefusesWhatIsDamaged) {
  Json json = to_json(TrainingProgress{});
  json["window"]["means"] = {{"loss", {1}}};
  EXPECT_THROW(training_progress_from(json, 12), Error);
  json["window"]["means"] = {{"loss", {1, 1}}, {"loss/a", {1, 1}}};  // a number and a group of numbers
  EXPECT_THROW(training_progress_from(json, 12), Error);
  json = to_json(TrainingProgress{});
  json["step"] = {{"a", {1}}};
  EXPECT_NE(testing::error_text([&] { training_progress_from(json, 12); }).find("step is object, allowed"),
            std::string::npos);
  json = to_json(TrainingProgress{});
  json.erase("best_step");
  EXPECT_THROW(training_progress_from(json, 12), Error);
  EXPECT_THROW(training_progress_from(Json("text"), 12), Error);
}

TEST(TrainingProgress, RefusesNumbersThatNoRunHas) {
  const auto message = [](const char* key, const Json& value) {
    Json json = to_json(TrainingProgress{12, 10, 0.75, 8, 1, 3.5, {}});
    json[key] = value;
    return testing::error_text([&] { training_progress_from(json, 12); });
  };
  EXPECT_EQ(message("step", 12), "");
  EXPECT_EQ(
      message("step", -1),
      "the checkpoint's training state is damaged: step is -1, allowed is a whole number from 0 to 12; start a new "
      "run or use another checkpoint");
  for (const Json& step : {Json(13), Json(int64_t{1} << 62), Json(UINT64_MAX), Json(1.5), Json(12.0), Json(1e300),
                           Json(nullptr), Json("12"), Json(true), Json::array()})
    EXPECT_NE(message("step", step), "") << step;
  for (const char* key : {"best_step", "evaluated_step"}) {
    EXPECT_NE(message(key, -1), "") << key;
    EXPECT_NE(message(key, 13), "") << key;
  }
  EXPECT_NE(message("evaluations_since_best", -5), "");
  EXPECT_NE(message("best_accuracy", 1.5), "");
  EXPECT_NE(message("best_accuracy", nullptr), "");
  EXPECT_NE(message("seconds", -1), "");
  EXPECT_NE(message("since_evaluation", Json{{"steps", -1}, {"images", 0}, {"seconds", 0}}), "");
  EXPECT_NE(message("since_evaluation", Json{{"steps", 1}, {"images", 0}, {"seconds", "x"}}), "");
  EXPECT_NE(message("since_evaluation", 3), "");
  EXPECT_NE(message("window", Json{{"images", -1}, {"seconds", 0}, {"means", Json::object()}}), "");
}

}  // namespace
}  // namespace sparsight::training_progress_test
