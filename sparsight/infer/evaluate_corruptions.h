// Evaluates a trained model on corrupted images (data/corruptions/): errors by corruption and severity, and their mean.
#pragma once

#include <string>
#include <vector>

#include "sparsight/infer/evaluate_run.h"

namespace sparsight {

struct CorruptionRequest {
  std::vector<std::string> kinds;   // names, in the order of the result; empty: all
  std::vector<int64_t> severities;  // 1 .. 5; empty: all
};

// {"event", "split", "weights", "step", "images", "severities": [1, ..], "clean_error", "corruptions": [{"corruption",
// "family", "errors": [one of each severity], "error", "mce"}], "mean_error", "relative_error", "mce"}, errors from 0
// to 1.
//   error: mean over severities; mean_error (the paper's mCE without a baseline): mean over corruptions
//   relative_error: mean of error - clean_error
//   mce: error / that of AlexNet, for models of ImageNet's 1,000 classes at all severities, and the mean over all
//   corruptions; else null
// Corruptions come right before the `normalize` of [transforms] eval, or last. Raises UsageError for unknown or
// repeated names and severities, and for records and routings, which belong to one evaluation, and what evaluate_run()
// raises.
Json evaluate_corruptions(const EvaluateRunOptions& options, const CorruptionRequest& request,
                          const MakePredictor& make_predictor, dist::Group& group);

// A table of errors in percent: a line for each corruption, a column for each severity.
std::string corruption_table(const Json& result);

}  // namespace sparsight
