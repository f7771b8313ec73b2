// Runs a command's work in one process or in a group of them.
#pragma once

#include "cli/launch_arguments.h"
#include "sparsight/core/function_ref.h"
#include "sparsight/dist/group.h"

namespace sparsight::cli {

// With --processes, starts them, waits, and ends the program where one has failed. Else calls `work` with the group
// that the process was started in; ranks other than 0 print warnings and errors alone.
void run_in_group(const LaunchArguments& arguments, FunctionRef<void(const dist::GroupPtr&)> work);

}  // namespace sparsight::cli
