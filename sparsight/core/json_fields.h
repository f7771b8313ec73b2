// Reads JSON of unknown content, such as a file written by another program.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sparsight/core/options.h"

namespace sparsight {

// The JSON value that `text` is. Text that is not JSON, or nests deeper than any file of ours (copying and writing a
// value takes stack for each level), gives a value that is_discarded(); is_object() and is_array() are then false.
Json parse_json(std::string_view text);

// The fields of a record, wherever the record comes from. A missing key, another type or a number that is not finite
// gives nothing (number, text) or an empty list.
std::optional<double> number(const Json& record, const std::string& key);
std::string text(const Json& record, const std::string& key);
std::vector<double> numbers(const Json& list);                   // entries that are not finite numbers become 0
const Json& member(const Json& record, const std::string& key);  // null where absent

}  // namespace sparsight
