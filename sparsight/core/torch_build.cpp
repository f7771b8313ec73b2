#include <ATen/Version.h>
#include <torch/headeronly/version.h>

#include "sparsight/core/machine.h"

namespace sparsight {

std::string torch_version() { return TORCH_VERSION; }

std::string instruction_set() { return at::get_cpu_capability(); }

}  // namespace sparsight
