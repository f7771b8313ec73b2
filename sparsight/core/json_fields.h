// Reads JSON that may hold anything, such as a file that somebody else wrote.
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
std::vector<double> numbers(const Json& list);                   // entries that are no finite number become 0
const Json& member(const Json& record, const std::string& key);  // null where absent

}  // namespace sparsight
