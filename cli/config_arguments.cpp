#include "cli/config_arguments.h"

#include <CLI/CLI.hpp>

namespace sparsight::cli {

void ConfigArguments::declare(CLI::App* verb, const std::string& name) {
  verb->add_option(name, file, "TOML configuration file (default: all settings at their defaults)")->type_name("FILE");
  verb->add_option("--set", overrides, "Override a setting; may be repeated")
      ->type_name("SECTION.KEY=VALUE")
      ->allow_extra_args(false);
}

}  // namespace sparsight::cli
