// The command line's frame: flags that every verb knows, and one clear line for a wrong command line.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace sparsight::cli {

// --quiet and --log-json, accepted before and after the verb, set up logging before the verb runs.
void add_global_flags(CLI::App& app);

// What is wrong with the command line that made `app` raise `error`, with the nearest known verb or flag.
std::string describe_usage_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace sparsight::cli
