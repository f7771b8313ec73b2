#include "cli/work/read_config.h"

#include <filesystem>

#include "sparsight/core/error.h"
#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/train/run_config.h"

namespace sparsight::cli {

Config read_config(const ConfigArguments& arguments) {
  if (std::filesystem::is_directory(arguments.file))
    fail_usage("a configuration is a TOML file, and ", printable(arguments.file),
               " is a folder; with images in it, try: sparsight train configs/own_images.toml --set data.root=",
               printable(arguments.file));
  std::vector<std::string> ignored;
  Config config = overridden(arguments.file.empty() ? Config::from_text("", "") : Config::from_file(arguments.file),
                             arguments.overrides, config_sections(), &ignored);
  for (const std::string& line : ignored) log_info(line);
  return config;
}

Json resolved_config(const ConfigArguments& arguments) { return resolve(read_config(arguments), config_sections()); }

}  // namespace sparsight::cli
