#include "cli/catalogue.h"

#include "sparsight/core/nearest_name.h"

namespace sparsight::cli {

std::vector<std::string> setting_keys() { return catalogue().at("settings").get<std::vector<std::string>>(); }

std::string component_names(const std::string& kind) {
  return join(catalogue().at("components").at(kind).get<std::vector<std::string>>());
}

}  // namespace sparsight::cli
