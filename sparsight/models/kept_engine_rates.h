// The rates of engines, measured once per machine and kept in a file.
#pragma once

#include <optional>
#include <string>

#include "sparsight/core/engines.h"

namespace sparsight {

// Where they are kept for this processor, instruction-set level, and versions of sparsight and torch: below
// $XDG_CACHE_HOME/sparsight, else ~/.cache/sparsight. Nothing where neither variable names an absolute path.
std::optional<std::string> engine_rates_file();

// From the file, which one process measures and writes first if there is none. Nothing where there is no place for
// it (`sparsight doctor` says so), or it holds something else, which is a warning: a choice that changed from run to
// run would change their bits.
std::optional<EngineRates> kept_engine_rates();

// What the environment variable SPARSIGHT_ENGINES asks for: "kernels", "onednn", or "measured" (the default), the
// faster ones of kept_engine_rates(), which are the kernels if there are none, and at a level that SPARSIGHT_ISA asks
// for. Raises UsageError for another value.
Engines environment_engines();
// Whether SPARSIGHT_ENGINES or SPARSIGHT_ISA names them, instead of a measurement.
bool environment_forces_engines();

}  // namespace sparsight
