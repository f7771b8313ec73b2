#pragma once

#include <functional>

namespace sparsight::cli {

// Runs `prepare` and then the command line, and returns the exit code; an error in either is reported in one line.
int run_program(int argc, char** argv, const std::function<void()>& prepare = {});

}  // namespace sparsight::cli
