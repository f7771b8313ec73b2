// Finds the dataset that a command-line argument names: a registered name, a member of a family, or a path.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "sparsight/core/options.h"

namespace sparsight {

struct LocatedSet {
  std::string name;  // in the registry
  Json settings;     // its settings, as in a configuration
};

// "mnist", "fashion-mnist", a CSV file, or a folder, whose kind is recognised by its content. Raises Error for anything
// else.
LocatedSet locate_set(const std::string& what);

}  // namespace sparsight
