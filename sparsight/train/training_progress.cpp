#include "sparsight/train/training_progress.h"

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

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
  json.at("images").get_to(window.images);
  json.at("seconds").get_to(window.seconds);
  window.means = json.contains("means") ? NamedMeans::from_json(json.at("means")) : earlier_means(json);
  return window;
}

}  // namespace

Json to_json(const TrainingProgress& progress) {
  const LogWindow& window = progress.window;
  return {{"step", progress.step},
          {"best_accuracy", progress.best_accuracy},
          {"best_step", progress.best_step},
          {"evaluated_step", progress.evaluated_step},
          {"evaluations_since_best", progress.evaluations_since_best},
          {"seconds", progress.seconds},
          {"window", {{"images", window.images}, {"seconds", window.seconds}, {"means", window.means.to_json()}}}};
}

TrainingProgress training_progress_from(const Json& json) {
  TrainingProgress progress;
  try {
    json.at("step").get_to(progress.step);
    json.at("best_accuracy").get_to(progress.best_accuracy);
    json.at("best_step").get_to(progress.best_step);
    json.at("evaluated_step").get_to(progress.evaluated_step);
    json.at("evaluations_since_best").get_to(progress.evaluations_since_best);
    json.at("seconds").get_to(progress.seconds);
    progress.window = window_from(json.at("window"));
  } catch (const nlohmann::json::exception& error) {
    fail("the checkpoint's training state is damaged (", error.what(), "); start a new run or use another checkpoint");
  }
  return progress;
}

}  // namespace sparsight
