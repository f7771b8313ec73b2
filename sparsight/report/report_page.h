// A run as one self-contained HTML page: a pure function. No address is loaded when it is opened, and its
// Content-Security-Policy forbids it; charts are drawn by the Vega scripts that it carries.
#pragma once

#include <string>

#include "sparsight/report/run_summary.h"

namespace sparsight {

std::string report_page(const RunSummary& run);

}  // namespace sparsight
