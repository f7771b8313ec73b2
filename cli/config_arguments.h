// The configuration of a verb: an optional TOML file and --set overrides.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace sparsight::cli {

struct ConfigArguments {
  std::string file;
  std::vector<std::string> overrides;

  // `name`: "config" for a positional argument, or a flag such as "--config".
  void declare(CLI::App* verb, const std::string& name = "config");
};

}  // namespace sparsight::cli
