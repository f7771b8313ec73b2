// `sparsight explain`: runs the model of a run on images and reports what its experts processed.
#pragma once

#include "sparsight/analysis/explanation.h"
#include "sparsight/infer/explain_request.h"

namespace sparsight {

// Raises Error if the run has no checkpoint, or an image cannot be read or does not fit the model.
Explanation explain_run(const ExplainRequest& request);

}  // namespace sparsight
