// A batch of an evaluation and what the model made of it, in messages to other ranks.
#pragma once

#include <string>

#include "sparsight/data/sample.h"
#include "sparsight/models/model_output.h"

namespace sparsight {

// Without images, losses and taps, which no observer reads.
struct EvaluatedBatch {
  Batch batch;
  ModelOutput output;
};

std::string to_bytes(const EvaluatedBatch& evaluated);
EvaluatedBatch evaluated_batch_from(const std::string& bytes);

}  // namespace sparsight
