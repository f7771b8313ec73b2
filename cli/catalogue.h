// The names that the library knows, for help and suggestions: of settings, and of components. They come from the
// library (cli/work), or from what it said when the front program was built (cli/front), so no list of names is kept by
// hand.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace sparsight::cli {

// What `sparsight config catalogue` prints: {"settings": ["run.seed", ...], "components": {"router": [...], ...}}.
const nlohmann::ordered_json& catalogue();

// "section.key" of every setting that the defaults have, in their order.
std::vector<std::string> setting_keys();

// "pacs, vlcs, ...": the components of a kind. A kind that does not exist is a bug.
std::string component_names(const std::string& kind);

}  // namespace sparsight::cli
