#include "cli/config_arguments.h"

#include "sparsight/core/log.h"
#include "sparsight/train/run_config.h"

namespace sparsight::cli {

void ConfigArguments::declare(CLI::App* verb, const std::string& name) {
  verb->add_option(name, file, "TOML configuration file (default: all settings at their defaults)")->type_name("FILE");
  verb->add_option("--set", overrides, "Override a setting; may be repeated")
      ->type_name("SECTION.KEY=VALUE")
      ->allow_extra_args(false);
}

Config ConfigArguments::read() const {
  std::vector<std::string> ignored;
  Config config = overridden(file.empty() ? Config::from_text("", "") : Config::from_file(file), overrides,
                             config_sections(), &ignored);
  for (const std::string& line : ignored) log_info(line);
  return config;
}

Json ConfigArguments::resolved() const { return resolve(read(), config_sections()); }

}  // namespace sparsight::cli
