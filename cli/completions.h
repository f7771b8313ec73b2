// Scripts with which shells complete the program's verbs, flags and values.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace sparsight::cli {

// "bash", "zsh", "fish"
std::vector<std::string> completed_shells();

// The script of one of those shells, for all verbs of the program.
std::string completion_script(const std::string& shell, const CLI::App& program);

}  // namespace sparsight::cli
