#include "sparsight/train/training_progress.h"

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"

namespace sparsight {
namespace {

constexpr int64_t kMaxImages = int64_t{1} << 53;  // a double counts no further
constexpr double kMaxSeconds = 1e10;              // 300 years

[[noreturn]] void fail_value(const char* key, const Json& got, const std::string& allowed) {
  fail("the checkpoint's training state is damaged: ", key, " is ",
       got.is_structured() ? got.type_name() : printable(shown(got).substr(0, 40)), ", allowed is ", allowed,
       "; start a new run or use another checkpoint");
}

int64_t progress_count(const Json& json, const char* key, int64_t max) {
  const Json& value = json.at(key);
  const bool is_int64 =
      value.is_number_integer() && (!value.is_number_unsigned() || value.get<uint64_t>() <= INT64_MAX);
  if (!is_int64 || value.get<int64_t>() < 0 || value.get<int64_t>() > max)
    fail_value(key, value, cat("a whole number from 0 to ", max));
  return value.get<int64_t>();
}

double progress_number(const Json& json, const char* key, double min, double max) {
  const Json& value = json.at(key);
  if (!value.is_number() || !(value.get<double>() >= min && value.get<double>() <= max))
    fail_value(key, value, cat("a number from ", min, " to ", max));
  return value.get<double>();
}

// Means of a window written by versions before the [algorithm] section: sums by name, over batches and over images.
NamedMeans earlier_means(const Json& window) {
  const double batches = window.at("batches").get<double>();
  NamedMeans means;
  if (batches == 0) return means;
  for (const char* name : {"loss", "task_loss"}) means.add(name, window.at(name).get<double>(), batches);
  for (const auto& [name, sum] : window.at("auxiliary").items())
    means.add("losses/" + name, sum.get<double>(), batches);
  means.add("accuracy", window.at("correct").get<double>(), window.at("images").get<double>());
  return means;
}

LogWindow window_from(const Json& json) {
  LogWindow window;
  window.images = progress_count(json, "images", kMaxImages);
  window.seconds = progress_number(json, "seconds", 0, kMaxSeconds);
  window.means = json.contains("means") ? NamedMeans::from_json(json.at("means")) : earlier_means(json);
  return window;
}

// Earlier versions have none.
UpdateTimes update_times_from(const Json& json) {
  if (!json.contains("since_evaluation")) return {};
  const Json& times = json.at("since_evaluation");
  return {progress_count(times, "steps", kMaxImages), progress_count(times, "images", kMaxImages),
          progress_number(times, "seconds", 0, kMaxSeconds),
          times.contains("means") ? NamedMeans::from_json(times.at("means")) : NamedMeans()};
}

}  // namespace

Json to_json(const TrainingProgress& progress) {
  const LogWindow& window = progress.window;
  const UpdateTimes& times = progress.since_evaluation;
  return {{"step", progress.step},
          {"best_accuracy", progress.best_accuracy},
          {"best_step", progress.best_step},
          {"evaluated_step", progress.evaluated_step},
          {"evaluations_since_best", progress.evaluations_since_best},
          {"seconds", progress.seconds},
          {"window", {{"images", window.images}, {"seconds", window.seconds}, {"means", window.means.to_json()}}},
          {"since_evaluation",
           {{"steps", times.steps},
            {"images", times.images},
            {"seconds", times.seconds},
            {"means", times.means.to_json()}}}};
}

TrainingProgress training_progress_from(const Json& json, int64_t total_steps) {
  TrainingProgress progress;
  try {
    progress.step = progress_count(json, "step", total_steps);
    progress.best_accuracy = progress_number(json, "best_accuracy", -1, 1);
    progress.best_step = progress_count(json, "best_step", progress.step);
    progress.evaluated_step = progress_count(json, "evaluated_step", progress.step);
    progress.evaluations_since_best = progress_count(json, "evaluations_since_best", progress.step + 1);
    progress.seconds = progress_number(json, "seconds", 0, kMaxSeconds);
    progress.window = window_from(json.at("window"));
    progress.since_evaluation = update_times_from(json);
    Json line;
    for (const NamedMeans* means : {&progress.window.means, &progress.since_evaluation.means})
      means->write_to(line);  // raises where one name is a number and a group of numbers
  } catch (const nlohmann::json::exception& error) {
    fail("the checkpoint's training state is damaged (", error.what(), "); start again or use another checkpoint");
  }
  return progress;
}

}  // namespace sparsight
