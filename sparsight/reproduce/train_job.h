// A job that trains a model: by the ordinary trainer, in the job's folder, so that a job that was killed goes on from
// its last checkpoint.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/core/options.h"

namespace sparsight {

// A passage through the training set.
struct TrainedEpoch {
  double accuracy = 0;  // of the training batches as they went by, 0 to 1
  double seconds = 0;   // since the beginning
};

struct JobTraining {
  std::vector<TrainedEpoch> epochs;
  Json test;  // the record of metrics.jsonl about the last weights on the test split; null without one
  int64_t steps_per_epoch = 0;
};

// sections: of a configuration, {"data": {...}, "model": {...}, ...}; what they leave out is as the defaults say. The
// validation split is not looked at. job_folder: FigureRun::job_folder; the trainer's own folder in it, "training", is
// gone afterwards. Raises Error on an interrupt, with a checkpoint written.
JobTraining train_in_job(const Json& sections, const std::string& job_folder);

}  // namespace sparsight
