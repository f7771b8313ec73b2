// The front program parses the command line, and replaces itself with the full program where a verb has work to do. So
// --help and usage errors need not wait for libtorch to be loaded, which takes a sixth of a second and 120 MB.
#pragma once

namespace sparsight::cli {

// The environment variable in which the full program receives the front program's path.
inline constexpr const char* kFrontVariable = "SPARSIGHT_FRONT_PROGRAM";

// What start_full_program passes on: the arguments of main().
void set_arguments(char** argv);

// Continues as the full program, in the same process. Raises Error if it cannot be started.
[[noreturn]] void start_full_program();

}  // namespace sparsight::cli
