// What the packing of weights makes, as a checksum: another one at levels and in builds whose panels are not the same.
#pragma once

#include <string>

namespace sparsight::engine {

// At the active level. Packs small matrices of each kind.
std::string packing_checksum();

}  // namespace sparsight::engine
