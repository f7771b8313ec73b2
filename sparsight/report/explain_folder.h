// The files of `sparsight explain` in a run folder: explain/explain.json (docs/explain.md) and the PNG files that it
// names, which the report includes.
#pragma once

#include <string>

#include "sparsight/analysis/explanation.h"

namespace sparsight {

// Removes the explanation of the run at `run`, and no other files. Nothing happens where there is none.
void remove_explanation(const std::string& run);

// Replaces the explanation of the run at `run`. explain.json is written last, so that it never names a
// missing file. Returns its contents. Raises Error if a file cannot be written.
Json write_explanation(const std::string& run, const Explanation& explanation);

}  // namespace sparsight
