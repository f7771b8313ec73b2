// The sections of a report with heat maps of experts: by class, by domain, and by part of keypoints.
#pragma once

#include "sparsight/report/page.h"
#include "sparsight/report/run/run_summary.h"

namespace sparsight {

// Those that the run has numbers for, from `sparsight explain`; classes else from the last evaluation.
void add_expert_maps(Page& page, const RunSummary& run);

}  // namespace sparsight
