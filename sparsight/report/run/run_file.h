// Files of a run folder that become part of its report. The folder may come from anyone, and the report go to anyone.
#pragma once

#include <string>

namespace sparsight {

// The whole file `name` of the folder `run`. Raises Error if it is not a regular file (a pipe or a device), lies
// outside the folder (through a symbolic link or ".."), is larger than `max_bytes`, or cannot be read.
std::string read_run_file(const std::string& run, const std::string& name, size_t max_bytes);

}  // namespace sparsight
