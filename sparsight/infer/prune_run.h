// `sparsight prune`: a trained model without some of its experts, and whether its answers are still those of the run.
#pragma once

#include <functional>

#include "sparsight/core/options.h"
#include "sparsight/infer/prune_request.h"

namespace sparsight {

struct LoadedModel;

// {"run", "split", "images", "layers": [{"layer", "of", "router", "experts": [{"expert", "load", "share", "importance",
// "into", "stays", and measured one by one "without": {"accuracy", "loss"} or null}], "exact"}], "exact",
// "accuracy_before", "accuracy_after", "drop", "agreement", "largest_difference", "parameters_before",
// "parameters_after", "bytes_before", "bytes_after", "out"}. "of": the MoE layers that follow the router. "into": the
// expert's number in the pruned layer, or null where it is removed; several experts with one number were merged.
// "without" is null where the layer does not work with one expert less. "exact": the answers on these images stay, up
// to rounding. Accuracies 0 to 1, the drop in points; bytes are those of parameters and buffers. "out" is null where
// nothing was written. Raises Error for a frozen or dense model, one with guided routers, and one whose routers or
// experts refuse; UsageError for a choice of experts that leaves none, or fewer than the router takes. check: may
// refuse the loaded model.
Json prune_run(const PruneRequest& request, const std::function<void(const LoadedModel&)>& check = {});

}  // namespace sparsight
