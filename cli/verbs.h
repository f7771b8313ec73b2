// One function per verb: each declares its flags on a subcommand of `app` and sets the callback that runs it.
// A verb parses, calls the library and prints; it holds no logic of its own.
#pragma once

#include <CLI/CLI.hpp>

namespace sparsight::cli {

void add_version(CLI::App& app);

}  // namespace sparsight::cli
