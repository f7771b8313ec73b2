// Reads JSON of unknown content, such as a file written by another program, and writes it.
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

// The text of a JSON value, always valid UTF-8: bytes of strings that are not become U+FFFD. indent: spaces, or -1 for
// one line.
std::string json_text(const Json& value, int indent = -1);

}  // namespace sparsight
