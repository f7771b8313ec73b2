// Text that is safe to print.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sparsight {

// Whether `text` is valid UTF-8.
bool is_utf8(std::string_view text);

// `name` as one line of valid UTF-8: control characters and bytes that are not UTF-8 become \xNN, C1 and
// bidirectional controls and other hidden characters \uNNNN. For names of files
// and classes, which may be any bytes but end up in messages, JSON and HTML.
std::string printable(std::string_view name);

// The names as printable text. Different names stay different: where two would look the same, every backslash is
// written \x5c in all of them.
std::vector<std::string> printable_names(const std::vector<std::string>& names);

}  // namespace sparsight
