// The charts of a figure as Vega-Lite specifications: pure functions of its table.
#pragma once

#include <vector>

#include "sparsight/report/charts/charts.h"
#include "sparsight/reproduce/run_figure.h"

namespace sparsight {

// One chart for each of Figure::charts that has data, and for heat maps one more with the paper's numbers. The paper's
// numbers are left out unless the data is compared (RunData).
std::vector<Chart> result_charts(const FigureOutcome& outcome);

// The same specification as a standalone file: with its own size, title and colours.
Json standalone_chart(const Chart& chart);

}  // namespace sparsight
