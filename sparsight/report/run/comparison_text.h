// What `sparsight compare` says on a terminal, from the JSON of eval/compare_records.h.
#pragma once

#include <string>

#include "sparsight/core/options.h"

namespace sparsight {

// Ends with a newline.
std::string comparison_text(const Json& comparison);

}  // namespace sparsight
