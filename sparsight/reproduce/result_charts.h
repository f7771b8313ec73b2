// The charts of a figure as Vega-Lite specifications: pure functions of its table.
#pragma once

#include <vector>

#include "sparsight/report/charts.h"
#include "sparsight/reproduce/run_figure.h"

namespace sparsight {

// One chart for each of Figure::charts that has a number to show, and for heat maps one more with the paper's numbers.
// The paper's numbers are left out where synthetic substitute data was used.
std::vector<Chart> result_charts(const FigureOutcome& outcome);

// The same specification as a file of its own: with a size, a title and colours that do not come from a page.
Json standalone_chart(const Chart& chart);

}  // namespace sparsight
