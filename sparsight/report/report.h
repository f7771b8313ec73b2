// Writes the report of a run folder.
#pragma once

#include <string>
#include <vector>

namespace sparsight {

// Writes the HTML report of the run at `run` to `out` (RUN/report.html if empty) and returns the path written.
// Raises Error if `run` is not a run folder, has no metrics, or if the file cannot be written.
// baselines: run folders to compare it with.
std::string write_report(const std::string& run, const std::string& out = "",
                         const std::vector<std::string>& baselines = {});

}  // namespace sparsight
