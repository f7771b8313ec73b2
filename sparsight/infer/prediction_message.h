// Predictions for image files in messages to other ranks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sparsight/infer/predict.h"

namespace sparsight {

// What became of an image: a prediction, or why there is none.
struct FileOutcome {
  std::optional<Prediction> prediction;
  std::string error = {};
};

std::string to_bytes(const std::vector<FileOutcome>& outcomes);
std::vector<FileOutcome> file_outcomes_from(const std::string& bytes);

}  // namespace sparsight
