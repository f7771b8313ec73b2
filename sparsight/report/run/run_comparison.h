// Runs side by side: accuracy, size, cost and training time of each, such as an MoE model and its dense counterpart.
#pragma once

#include <string>
#include <vector>

#include "sparsight/report/run/run_metrics.h"
#include "sparsight/report/text_table.h"

namespace sparsight {

struct ComparedRun {
  std::string name;  // of its folder
  RunMetrics log;
};

// Raises Error if `path` is not a run folder or its metrics cannot be read.
ComparedRun read_compared_run(const std::string& path);

// One row per run: the accuracy of its final evaluation with a 95 % Wilson interval, parameters, active parameters
// (those that one token uses), multiply-adds per image and training time; "-" for what a run does not say.
Rows comparison_rows(const std::vector<ComparedRun>& runs);

// The rows of the run at `path` and its baselines; empty without baselines.
Rows compared_with(const std::string& path, const std::vector<std::string>& baselines);

}  // namespace sparsight
