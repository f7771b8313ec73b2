// Global flags, and a one-line message for every error.
#pragma once

#include <functional>
#include <string>

#include <CLI/CLI.hpp>

namespace sparsight::cli {

// --quiet and --log-json, accepted before and after the verb, set up logging before the verb runs.
void add_global_flags(CLI::App& app);

// Runs `parse`, which parses a command line into `app`, and returns the exit code. Raises UsageError for an invalid
// command line: one line that suggests the closest verb or flag.
int parsed(CLI::App& app, const std::function<void()>& parse);

// Returns the exit code of `run`, or of the error that it threw, which is logged in one line. Output that could not be
// written is an error too.
int to_exit_code(const std::function<int()>& run);

}  // namespace sparsight::cli
