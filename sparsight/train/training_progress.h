// How far a training run has come: the part of a checkpoint that is neither weights nor optimiser state.
#pragma once

#include <map>
#include <string>

#include "sparsight/core/options.h"

namespace sparsight {

// Sums over the batches since the last logged line.
struct LogWindow {
  int64_t batches = 0, images = 0, correct = 0;
  double loss = 0;  // task loss plus weighted auxiliary losses
  double task_loss = 0;
  double seconds = 0;                       // of the steps alone: evaluations and checkpoints do not count
  std::map<std::string, double> auxiliary;  // unweighted, summed over layers

  void add(const LogWindow& batch);
};

struct TrainingProgress {
  int64_t step = 0;            // finished optimiser steps
  int64_t evaluated_step = 0;  // of the last evaluation
  double best_accuracy = -1;
  int64_t best_step = 0;
  int64_t evaluations_since_best = 0;
  double seconds = 0;  // of all sessions of the run together
  LogWindow window;
};

Json to_json(const TrainingProgress& progress);
// Raises Error for missing or ill-typed keys.
TrainingProgress training_progress_from(const Json& json);

}  // namespace sparsight
