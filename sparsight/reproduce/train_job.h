// A job that trains a model with the ordinary trainer, in the job's folder, so that a killed job resumes from its last
// checkpoint.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/core/options.h"

namespace sparsight {

// One pass over the training split.
struct TrainedEpoch {
  double accuracy = 0;  // running accuracy on the training batches, 0 to 1
  double seconds = 0;   // since the start of training
};

struct JobTraining {
  std::vector<TrainedEpoch> epochs;
  Json test;  // the metrics.jsonl record of the final weights on the test split; null without one
  int64_t steps_per_epoch = 0;
};

// sections: of a configuration, {"data": {...}, "model": {...}, ...}; omitted settings keep their defaults. The
// validation split is not used. job_folder: FigureRun::job_folder; the trainer's own folder in it, "training", is
// deleted afterwards, but for the checkpoint of the final weights, which moves to `weights` unless that is "". Raises
// Error on an interrupt, with a checkpoint written.
JobTraining train_in_job(const Json& sections, const std::string& job_folder, const std::string& weights = "");

}  // namespace sparsight
