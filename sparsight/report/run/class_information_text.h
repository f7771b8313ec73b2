// What the experts of an MoE layer tell about classes, domains or parts (analysis/class_information.h), for people.
#pragma once

#include <string>

#include "sparsight/core/options.h"

namespace sparsight {

// "0.16 bits (shuffled classes: 0.05 +- 0.02, at most 3.00)". of: "classes", what was shuffled. "" where `information`
// has no bits.
std::string information_text(const Json& information, const std::string& of);
// The text for the "class_information" of an entry of "layers"; "" where it has none.
std::string class_information_text(const Json& layer);

}  // namespace sparsight
