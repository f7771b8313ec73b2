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

  // `name`: "config" for a positional argument, or a flag such as "--config".
  void declare(CLI::App* verb, const std::string& name = "config");
  Config read() const;    // all defaults if there is no file
  Json resolved() const;  // checked against config_sections()
};

}  // namespace sparsight::cli
