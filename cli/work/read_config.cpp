#include "cli/work/read_config.h"

#include "sparsight/core/log.h"
#include "sparsight/train/run_config.h"

namespace sparsight::cli {

Config read_config(const ConfigArguments& arguments) {
  std::vector<std::string> ignored;
  Config config = overridden(arguments.file.empty() ? Config::from_text("", "") : Config::from_file(arguments.file),
                             arguments.overrides, config_sections(), &ignored);
  for (const std::string& line : ignored) log_info(line);
  return config;
}

Json resolved_config(const ConfigArguments& arguments) { return resolve(read_config(arguments), config_sections()); }

}  // namespace sparsight::cli
