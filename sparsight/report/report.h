// Writes the report of a run folder, or of several.
#pragma once

#include <string>
#include <vector>

namespace sparsight {

// Writes the HTML report of the run at `run` to `out` (RUN/report.html if empty) and returns the path written.
// Raises Error if `run` is not a run folder, has no metrics, or if the file cannot be written.
// baselines: run folders to compare it with.
std::string write_report(const std::string& run, const std::string& out = "",
                         const std::vector<std::string>& baselines = {});

// Writes the page of several runs beside each other (report/run/overlaid_runs.h) to `out` (comparison.html in the
// current folder if empty) and returns the path written. Raises errors as read_overlaid_runs() does.
std::string write_overlaid_report(const std::vector<std::string>& runs, const std::string& out = "");

}  // namespace sparsight
