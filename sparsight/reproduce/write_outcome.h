// Writes the result of a figure into the folder of its run.
#pragma once

#include <string>

#include "sparsight/reproduce/run_figure.h"

namespace sparsight {

// result.csv, result.json, result.md, report.html, and chart-N.vl.json, .svg and .png of every chart. `python`: of
// chart_images.h; where it cannot draw, a warning says so and the rest is there all the same. Raises Error where a file
// cannot be written.
void write_outcome(const FigureOutcome& outcome, const std::string& python = "");

}  // namespace sparsight
