// Reads JSON of unknown content, such as a file written by another program.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sparsight/core/options.h"

namespace sparsight {

// The fields of a record, wherever the record comes from. A missing key, another type or a number that is not finite
// gives nothing (number, text) or an empty list.
std::optional<double> number(const Json& record, const std::string& key);
std::string text(const Json& record, const std::string& key);
std::vector<double> numbers(const Json& list);                   // entries that are not finite numbers become 0
const Json& member(const Json& record, const std::string& key);  // null where absent

}  // namespace sparsight
