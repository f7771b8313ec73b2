// Writes the result of a figure into the folder of its run.
#pragma once

#include <string>

#include "sparsight/reproduce/run_figure.h"

namespace sparsight {

// result.csv, result.json, result.md, trials.csv, trials.jsonl, report.html, and chart-N.vl.json, .svg and .png of
// every chart. `python`: as in chart_images.h; if it cannot render, a warning says so and the other files are still
// written. Raises Error if a file cannot be written.
void write_outcome(const FigureOutcome& outcome, const std::string& python = "");

}  // namespace sparsight
