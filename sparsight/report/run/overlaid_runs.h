// Several runs beside each other: their curves in one colour each, their results and the settings in which they differ.
#pragma once

#include <string>
#include <vector>

#include "sparsight/report/charts/charts.h"
#include "sparsight/report/run/run_metrics.h"
#include "sparsight/report/text_table.h"

namespace sparsight {

inline constexpr size_t kMaxOverlaidRuns = 10;  // as many as charts have colours
inline constexpr size_t kMaxDifferingSettings = 200;

struct OverlaidRun {
  std::string name;  // of its folder; the path that was given, where two folders have one name
  RunMetrics log;
  Json config;  // {section: {key: value}}, or null
};

struct OverlaidRuns {
  std::vector<OverlaidRun> runs;      // at least two
  std::vector<std::string> warnings;  // what was left out, one line each
};

// Reads two to kMaxOverlaidRuns run folders. A run whose metrics cannot be read or say nothing is left out, with a
// warning that names it; a damaged configuration and damaged lines become a warning too. Raises UsageError for another
// number of runs and for one that is given twice, Error for a path that is not a run folder and where fewer than two
// runs are left.
OverlaidRuns read_overlaid_runs(const std::vector<std::string>& paths);

// comparison_rows() of the runs, with the loss of that evaluation and the last step of each.
Rows overlaid_results(const std::vector<OverlaidRun>& runs);

// A row for each setting that is not the same in all runs whose configuration is there, with its value in each run ("-"
// where a run does not have it); at most kMaxDifferingSettings. Only the header if there are none.
Rows differing_settings(const std::vector<OverlaidRun>& runs);

// Loss and accuracy of training and validation, and the learning rate: a curve for each run. Those that a run has
// numbers for.
std::vector<Chart> overlaid_charts(const std::vector<OverlaidRun>& runs);

// All of it as a page like report_page().
std::string overlaid_page(const OverlaidRuns& overlaid);

}  // namespace sparsight
