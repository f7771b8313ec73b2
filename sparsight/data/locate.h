// From what a person types to a dataset: a registered name, a member of a family, or a path.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "sparsight/core/options.h"

namespace sparsight {

struct LocatedSet {
  std::string name;  // in the registry
  Json settings;     // its settings, as in a configuration
};

// "mnist", "fashion-mnist", a CSV file, or a folder, whose kind is told by what lies in it. Raises Error where it is
// nothing known.
LocatedSet locate_set(const std::string& what);

}  // namespace sparsight
