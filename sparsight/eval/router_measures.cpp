#include "sparsight/eval/router_measures.h"

namespace sparsight {

void RouterMeasures::observe(const Batch& batch, const ModelOutput& output) {
  accuracy_.add(output.routings, batch.labels);
  touched_.add(output, batch.labels.size(0));
}

void RouterMeasures::put_into(Evaluation& evaluation) const {
  evaluation.router_accuracy = accuracy_.mean();
  accuracy_.put_into(evaluation.layers);
  evaluation.touched = touched_.json();
}

}  // namespace sparsight
