// Settings on the command line: --set key=value, where the value is TOML or a bare word.
#pragma once

#include <string>
#include <vector>

#include "sparsight/core/options.h"

namespace sparsight::cli {

// A table of all assignments; the last one of a key counts. Raises UsageError for one without a key.
Json key_values(const std::vector<std::string>& assignments);

}  // namespace sparsight::cli
