#include "cli/cmd_version.h"
#include "sparsight/core/machine.h"

namespace sparsight::cli {

void run_version() { print_version(torch_version(), instruction_set()); }

}  // namespace sparsight::cli
