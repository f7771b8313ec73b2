// A run as one self-contained HTML page: a pure function. Opening it makes no network requests, and its
// Content-Security-Policy forbids them; charts are drawn by the embedded Vega scripts.
#pragma once

#include <string>

#include "sparsight/report/run/run_summary.h"
#include "sparsight/report/text_table.h"

namespace sparsight {

// comparison: the run beside others (comparison_rows), or empty.
std::string report_page(const RunSummary& run, const Rows& comparison = {});

}  // namespace sparsight
