// explain.json of a run and the pictures that it names (docs/explain.md), as the report shows them.
#pragma once

#include <string>
#include <vector>

#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"
#include "sparsight/report/run/run_summary.h"

namespace sparsight {

// The explanation in the folder `name` of the run folder `path`. Adds to `run` the names of classes and a warning for
// what is missing, damaged or outside the run folder. Empty if there is none.
ExplainSummary read_explanation(const std::string& path, const std::string& name, RunSummary& run);

// Calls `read`; a failure becomes a warning and the report continues.
template <class Read>
void attempt(std::vector<std::string>& warnings, Read read) {
  try {
    read();
  } catch (const Error& error) {
    warnings.push_back(printable(error.what()));
  }
}

// The JSON object in a file of the run folder `path`.
Json read_object(const std::string& path, const std::string& name);

// The entries of a list; "" for those that are no strings.
std::vector<std::string> read_strings(const Json& list);

}  // namespace sparsight
