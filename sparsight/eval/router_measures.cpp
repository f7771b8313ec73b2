#include "sparsight/eval/router_measures.h"

#include <nlohmann/json.hpp>

namespace sparsight {

void RouterMeasures::observe(const Batch& batch, const ModelOutput& output) {
  accuracy_.add(output.routings, batch.labels);
  touched_.add(output, batch.labels.size(0));
}

void RouterMeasures::put_into(Evaluation& evaluation) const {
  evaluation.router_accuracy = accuracy_.mean();
  for (Json& layer : evaluation.layers)
    for (const RouterHits& found : accuracy_.layers())
      if (layer["layer"] == found.layer) layer["router_accuracy"] = found.accuracy();
  evaluation.touched = touched_.json();
}

}  // namespace sparsight
