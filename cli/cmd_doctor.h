// `sparsight doctor`
#pragma once

#include <string>

namespace sparsight::cli {

// run: the folder of a run to be looked at instead of this machine, or "".
void run_doctor(const std::string& run);

}  // namespace sparsight::cli
