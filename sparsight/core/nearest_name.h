// Finds the name that a user probably meant.
#pragma once

#include <string>
#include <vector>

namespace sparsight {

// The entry of `names` with the smallest edit distance to `word`; "" if `names` is empty.
std::string nearest_name(const std::string& word, const std::vector<std::string>& names);

// "a, b, c"
std::string join(const std::vector<std::string>& names, const std::string& separator = ", ");

}  // namespace sparsight
