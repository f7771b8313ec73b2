// Predictions for image files, in batches: the next batch is read and decoded while the model runs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sparsight/dist/group.h"
#include "sparsight/infer/image_list.h"
#include "sparsight/infer/predict.h"

namespace sparsight {

struct PredictFilesOptions {
  int64_t top = 3;         // classes per image
  int64_t max_batch = 64;  // images; fewer where images are large
};

struct PredictFilesResult {
  int64_t images = 0;  // that were named
  int64_t failed = 0;  // of them: unreadable, or of a shape that the model does not take
};

// Calls answer() for each image in order, or logs an error in its place. A batch takes the names that are there and
// waits only for the first, so a line of standard input is answered before the next one is written. `replay`: routings
// by position of the image. Shows progress if it takes longer than two seconds. Raises Error at Ctrl-C.
PredictFilesResult predict_files(const LoadedModel& loaded, ImageNames& names, const RoutingReplay& replay,
                                 const PredictFilesOptions& options,
                                 const std::function<void(const Prediction&)>& answer);
// The same with batches shared out over the ranks of a group, which all have the same names, and none from standard
// input. Rank 0 answers and logs as one process does; the others return nothing.
PredictFilesResult predict_files(const LoadedModel& loaded, ImageNames& names, const RoutingReplay& replay,
                                 const PredictFilesOptions& options,
                                 const std::function<void(const Prediction&)>& answer, dist::Group& group);

}  // namespace sparsight
