// Paths as users write them.
#pragma once

#include <string>

namespace sparsight {

// "weights" for "weights/".
inline std::string without_slashes_at_end(const std::string& path) {
  return path.substr(0, path.find_last_not_of('/') + 1);
}

}  // namespace sparsight
