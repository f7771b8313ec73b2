// How balanced and how specialised the routing of an evaluation was, from its records.
#pragma once

#include "sparsight/core/options.h"
#include "sparsight/eval/records.h"

namespace sparsight {

// [{"layer", "router", "experts", "k", "cv_load", "max_over_mean", "dropped", "mean_top_gate", "class_information"}]:
// of each MoE layer, as in metrics.jsonl, but cv_load and max_over_mean of the counts. router and k are the settings,
// k of evaluation. What is not known, as most of a soft layer, is absent.
Json recorded_routing(const Records& records);

}  // namespace sparsight
