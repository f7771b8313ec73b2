// What a named section of a resolved configuration chooses, as settings and not as a component.
#pragma once

#include <string>

#include "sparsight/core/config.h"

namespace sparsight {

inline std::string name_in(const Json& resolved, const std::string& section) {
  return resolved.at(section).at("name").get<std::string>();
}

// Raises UsageError for settings that `Options` does not have.
template <class Options>
Options settings_in(const Json& resolved, const std::string& section) {
  Json settings = resolved.at(section);
  settings.erase("name");
  return read_section<Options>({{section, settings}}, section);
}

}  // namespace sparsight
