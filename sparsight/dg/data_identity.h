// What tells the images of a run from others, whatever folder they are in.
#pragma once

#include <string>

#include "sparsight/dg/dg_run.h"

namespace sparsight {

// The fingerprint of names and labels of all images of the run's environments, and of the pixels of some of them.
// Raises Error where the data are missing.
std::string data_identity(const DgRun& run);

}  // namespace sparsight
