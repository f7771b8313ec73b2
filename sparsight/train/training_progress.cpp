#include "sparsight/train/training_progress.h"

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"

namespace sparsight {

void LogWindow::add(const LogWindow& batch) {
  batches += batch.batches;
  images += batch.images;
  correct += batch.correct;
  loss += batch.loss;
  task_loss += batch.task_loss;
  seconds += batch.seconds;
  for (const auto& [name, value] : batch.auxiliary) auxiliary[name] += value;
}

Json to_json(const TrainingProgress& progress) {
  const LogWindow& window = progress.window;
  return {{"step", progress.step},
          {"best_accuracy", progress.best_accuracy},
          {"best_step", progress.best_step},
          {"evaluated_step", progress.evaluated_step},
          {"evaluations_since_best", progress.evaluations_since_best},
          {"seconds", progress.seconds},
          {"window",
           {{"batches", window.batches},
            {"images", window.images},
            {"correct", window.correct},
            {"loss", window.loss},
            {"task_loss", window.task_loss},
            {"seconds", window.seconds},
            {"auxiliary", window.auxiliary}}}};
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
    const Json& window = json.at("window");
    window.at("batches").get_to(progress.window.batches);
    window.at("images").get_to(progress.window.images);
    window.at("correct").get_to(progress.window.correct);
    window.at("loss").get_to(progress.window.loss);
    window.at("task_loss").get_to(progress.window.task_loss);
    window.at("seconds").get_to(progress.window.seconds);
    window.at("auxiliary").get_to(progress.window.auxiliary);
  } catch (const nlohmann::json::exception& error) {
    fail("the checkpoint's training state is damaged (", error.what(), "); start anew or use another checkpoint");
  }
  return progress;
}

}  // namespace sparsight
