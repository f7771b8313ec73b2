// What all parts of `sparsight dg` that train read from the command line.
#pragma once

#include "cli/cmd_dg.h"
#include "sparsight/dg/dg_run.h"

namespace sparsight::cli {

// Raises UsageError for an unknown dataset.
DgRun to_dg_run(const DgRunArguments& arguments);

}  // namespace sparsight::cli
