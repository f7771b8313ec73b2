// How well each class is recognised, in the report of a run.
#pragma once

#include "sparsight/report/page.h"
#include "sparsight/report/run/run_metrics.h"

namespace sparsight {

// The accuracy of each class and domain in the final evaluation, the most frequent confusions, the confusion matrix and
// the calibration. confused: the cells of read_confused(), whose photos the matrix and the list then open; or null.
// Nothing without an evaluation.
void add_classes(Page& page, const RunMetrics& log, const Json& confused);

}  // namespace sparsight
