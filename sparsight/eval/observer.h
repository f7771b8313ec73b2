// The interface of everything that observes the batches of an evaluation: accuracy, router statistics, records.
#pragma once

#include "sparsight/data/sample.h"
#include "sparsight/models/model_output.h"

namespace sparsight {

class EvaluationObserver {
 public:
  virtual ~EvaluationObserver() = default;
  // Called once for each batch, in order, without gradients.
  virtual void observe(const Batch& batch, const ModelOutput& output) = 0;
};

}  // namespace sparsight
