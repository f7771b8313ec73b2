// The names of the configuration's settings, which usage errors suggest.
#pragma once

#include <string>
#include <vector>

namespace sparsight::cli {

// "section.key" of every setting that the defaults have, in their order. Asks the library (cli/work), or what it said
// when the front program was built (cli/front).
std::vector<std::string> setting_keys();

}  // namespace sparsight::cli
