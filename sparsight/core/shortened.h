// Text of any length in a message.
#pragma once

#include <cstddef>
#include <string>

namespace sparsight {

// A text of more than `limit` bytes without its middle, which becomes "... (N bytes left out) ...": what it begins with
// and, as advice stands there, what it ends with. Characters of UTF-8 stay whole. limit: at least 100.
std::string shortened(const std::string& text, size_t limit);

}  // namespace sparsight
