// Text that is safe to print.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sparsight {

// Whether `text` is valid UTF-8.
bool is_utf8(std::string_view text);

// `name` as one line of valid UTF-8: control characters and bytes that are not UTF-8 become \xNN. For names of files
// and classes, which may be any bytes but end up in messages, JSON and HTML.
std::string printable(std::string_view name);

// The same for text of several lines, which stays several lines.
std::string printable_lines(std::string_view text);

// The names as printable text. Different names stay different: where two would look the same, every backslash is
// written \x5c in all of them.
std::vector<std::string> printable_names(const std::vector<std::string>& names);

}  // namespace sparsight
