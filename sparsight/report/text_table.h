// Tables as text.
#pragma once

#include <string>
#include <vector>

namespace sparsight {

using Rows = std::vector<std::vector<std::string>>;  // the first row is the header; all have its length

std::string aligned(const Rows& rows);   // for a terminal: columns of equal width, two spaces apart
std::string markdown(const Rows& rows);  // a GitHub table, in which cells read as they are, whatever they hold

}  // namespace sparsight
