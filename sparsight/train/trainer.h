// The training loop: steps, evaluations, checkpoints and the log. The algorithm (algorithm.h) defines what a step does.
// All random samples of a step are a function of its number, so a run that was killed and resumed from its last
// checkpoint ends with the same bits as an uninterrupted one.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "sparsight/core/machine.h"
#include "sparsight/eval/evaluate.h"
#include "sparsight/io/checkpoint.h"
#include "sparsight/io/metrics_log.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/models/spread_experts.h"
#include "sparsight/train/training_progress.h"
#include "sparsight/train/training_setup.h"

namespace sparsight {

enum class TrainingEnd { finished, stopped_early, interrupted };

class Trainer {
 public:
  Trainer(TrainingSetup setup, RunFolder folder);

  // Continues from the run's last checkpoint, or from the start if there is none yet. Raises Error if the checkpoint
  // does not match the configuration.
  void resume();

  // Trains to the end, evaluates the best weights on the test split and marks the run as done. After an interrupt the
  // last checkpoint is written and the function returns early. Raises Error for a loss or gradient that is not finite
  // (on_nan = "stop"); the last checkpoint then stays as it was.
  TrainingEnd run();

  int64_t step() const { return progress_.step; }
  const RunFolder& folder() const { return folder_; }

 private:
  void start_loaders();
  bool stopped();  // whether some rank was interrupted
  void train_step();
  UpdateResult update(int64_t& images);
  void not_finite(const UpdateResult& result);
  void log_step(const Json& details);
  bool evaluation_due() const;
  bool checkpoint_due() const;
  bool lacks_checkpoint(const std::string& name) const;  // whether some rank does
  // more: observers of each batch.
  Evaluation evaluate_model(Loader& loader, const std::string& title, std::vector<EvaluationObserver*> more = {});
  std::string evaluated_weights() const;
  void evaluate_and_keep_best();
  void save_evaluated();
  void save_missing_best();
  void save_best();
  void ensure_best();
  void save_averaged_best();
  bool out_of_patience() const;
  bool tests_on_validation() const;
  void load_best();  // and lets go of the checkpoint before anything is evaluated
  void evaluate_result();
  void evaluate_raw();
  void final_evaluation(bool has_result);
  int64_t count_unreadable(const EndlessLoader& loader) const;
  int64_t note_unreadable();  // their number
  void save_last();
  Checkpoint weights_checkpoint() const;
  void write(const std::string& name, const Checkpoint& checkpoint) const;  // "last" or "best"
  int64_t epoch() const;
  double seconds() const;
  Json updates_before(int64_t peak_bytes) const;
  double progress_at(int64_t step) const;  // fraction of the training, 0 to 1
  std::string status() const;

  TrainingSetup setup_;
  RunFolder folder_;
  SpreadParameters spread_;
  std::optional<MetricsLog> metrics_;  // while running
  bool bf16_, writes_parts_;
  bool stopped_ = false;
  TrainingProgress progress_;
  PhasePeaks memory_;
  std::chrono::steady_clock::time_point session_start_, last_checkpoint_;
  std::string headline_;  // of the last step
};

}  // namespace sparsight
