// The "class_information" of an MoE layer (analysis/class_information.h) for people.
#pragma once

#include <string>

#include "sparsight/core/options.h"

namespace sparsight {

// "0.16 bits (shuffled classes: 0.05 +- 0.02, at most 3.00)" of an entry of "layers"; "" where it has none.
std::string class_information_text(const Json& layer);

}  // namespace sparsight
