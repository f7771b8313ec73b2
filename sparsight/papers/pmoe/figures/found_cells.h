// How often the experts of a two-layer network take the patch that determines the label (figures 8 and 9).
#pragma once

#include "sparsight/analysis/patch_routing_report.h"
#include "sparsight/papers/pmoe/two_layer/patch_sgd.h"

namespace sparsight::pmoe {

// data.position must be known. Raises Error for a model without a router.
PatchRoutingReport found_cells(PatchCnn& model, const PatchSet& data);

// The percentage of samples whose discriminative cell the expert of their class takes, in a separately trained network.
double found_by_right_expert(PatchCnn& model, const PatchSet& data);

}  // namespace sparsight::pmoe
