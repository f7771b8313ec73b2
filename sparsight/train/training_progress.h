// The progress of a training run: the part of a checkpoint that is neither weights nor the algorithm's state.
#pragma once

#include "sparsight/train/named_means.h"

namespace sparsight {

// What has been measured since the last logged line.
struct LogWindow {
  int64_t images = 0;
  double seconds = 0;  // of training steps only, without evaluations and checkpoints
  NamedMeans means;
};

// Updates since the last evaluation: what they reported, and their time with waiting for their batches, without
// checkpoints.
struct UpdateTimes {
  int64_t steps = 0, images = 0;
  double seconds = 0;
  NamedMeans means = {};
};

struct TrainingProgress {
  int64_t step = 0;            // finished optimiser steps
  int64_t evaluated_step = 0;  // of the last evaluation
  double best_accuracy = -1;
  int64_t best_step = 0;
  int64_t evaluations_since_best = 0;
  double seconds = 0;  // over all sessions of the run
  LogWindow window;
  UpdateTimes since_evaluation = {};
};

Json to_json(const TrainingProgress& progress);
// Also reads what earlier versions wrote. Raises Error for missing or ill-typed keys.
TrainingProgress training_progress_from(const Json& json, int64_t total_steps);

}  // namespace sparsight
