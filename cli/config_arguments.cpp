#include "cli/config_arguments.h"

#include "cli/usage_error.h"

namespace sparsight::cli {

void ConfigArguments::declare(CLI::App* verb, const std::string& name) {
  verb->add_option(name, file, "TOML configuration file (default: all settings at their defaults)")->type_name("FILE");
  add_set_option(*verb, overrides, "Override a setting; may be repeated");
}

}  // namespace sparsight::cli
