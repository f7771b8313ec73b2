#include "cli/catalogue.h"

namespace sparsight::cli {

std::vector<std::string> setting_keys() { return catalogue().at("settings").get<std::vector<std::string>>(); }

std::string component_names(const std::string& kind) {
  std::string text;
  for (const auto& name : catalogue().at("components").at(kind))
    text += (text.empty() ? "" : ", ") + name.get<std::string>();
  return text;
}

}  // namespace sparsight::cli
