// What an evaluation measures of routers beyond their load: how often guided ones find the super-class, and which
// weights an image touches.
#pragma once

#include <vector>

#include "sparsight/analysis/router_accuracy.h"
#include "sparsight/analysis/touched_weights.h"
#include "sparsight/eval/evaluate.h"
#include "sparsight/eval/observer.h"

namespace sparsight {

class RouterMeasures : public EvaluationObserver {
 public:
  // super_class_of: [K] of the model's classes; empty where its routers are not guided (eval/guidance.h).
  RouterMeasures(const std::vector<int64_t>& super_class_of, ExpertWeights weights)
      : accuracy_(super_class_of), touched_(std::move(weights)) {}

  void observe(const Batch& batch, const ModelOutput& output) override;

  // Sets router_accuracy, also in the entries of `layers`, and touched.
  void put_into(Evaluation& evaluation) const;

 private:
  RouterAccuracy accuracy_;
  TouchedWeights touched_;
};

}  // namespace sparsight
