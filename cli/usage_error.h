// One line for a wrong command line, with what it probably means: a name that is nearly right, a setting given as a
// flag, or a flag of timm or Ultralytics.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace sparsight::cli {

// Describes what is wrong with the command line that made `app` throw `error`.
std::string describe_usage_error(const CLI::App& app, const CLI::ParseError& error);

// --set SECTION.KEY=VALUE, which may be repeated.
void add_set_option(CLI::App& verb, std::vector<std::string>& overrides, const std::string& help);

}  // namespace sparsight::cli
