// Text that is safe to print.
#pragma once

#include <string>
#include <string_view>

namespace sparsight {

// `name` as one line of valid UTF-8: control characters and bytes that are not UTF-8 become \xNN. For names of files
// and classes, which may be any bytes but end up in messages, JSON and HTML.
std::string printable(std::string_view name);

}  // namespace sparsight
