// The configuration of a verb: an optional TOML file and --set overrides.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "sparsight/core/config.h"

namespace sparsight::cli {

struct ConfigArguments {
  std::string file;
  std::vector<std::string> overrides;

  void declare(CLI::App* verb);
  Config read() const;    // only defaults where there is no file
  Json resolved() const;  // checked against config_sections()
};

}  // namespace sparsight::cli
