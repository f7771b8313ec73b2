#include "cli/catalogue.h"

namespace sparsight::cli {

// What `sparsight config catalogue` prints; made by catalogue.cmake.
extern const char catalogue_text[];

const nlohmann::ordered_json& catalogue() {
  static const auto catalogue = nlohmann::ordered_json::parse(catalogue_text);
  return catalogue;
}

}  // namespace sparsight::cli
