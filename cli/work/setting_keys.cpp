#include "cli/setting_keys.h"

#include <nlohmann/json.hpp>

#include "sparsight/train/run_config.h"

namespace sparsight::cli {

std::vector<std::string> setting_keys() {
  std::vector<std::string> names;
  const Json defaults = resolve(Config::from_text("", "defaults"), config_sections());
  for (const auto& [section, settings] : defaults.items())
    if (settings.is_object())
      for (const auto& [key, value] : settings.items()) names.push_back(section + "." + key);
  return names;
}

}  // namespace sparsight::cli
