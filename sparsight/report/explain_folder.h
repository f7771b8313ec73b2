// The files of `sparsight explain` in a run folder: explain/explain.json (docs/explain.md) and the PNG files that it
// names, which the report takes up.
#pragma once

#include <string>

#include "sparsight/analysis/explanation.h"

namespace sparsight {

// Replaces the explanation of the run at `run`. explain.json comes last, so that it never names a file that is not
// there. Returns what it holds. Raises Error where a file cannot be written.
Json write_explanation(const std::string& run, const Explanation& explanation);

}  // namespace sparsight
