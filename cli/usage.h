// The command line's frame: flags that every verb knows, and one clear line for whatever goes wrong.
#pragma once

#include <functional>
#include <string>

#include <CLI/CLI.hpp>

namespace sparsight::cli {

// --quiet and --log-json, accepted before and after the verb, set up logging before the verb runs.
void add_global_flags(CLI::App& app);

// What `parse`, which parses a command line into `app`, exits with. Raises UsageError for a wrong one: one line with
// the nearest known verb or flag.
int parsed(CLI::App& app, const std::function<void()>& parse);

// What main() returns for `run`: its exit code, or that of its error, which is logged in one line. An answer that could
// not be written is an error too.
int exit_code_of(const std::function<int()>& run);

}  // namespace sparsight::cli
