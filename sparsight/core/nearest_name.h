// Finds the name that a user wrote or probably meant.
#pragma once

#include <string>
#include <vector>

namespace sparsight {

// The entry of `names` with the smallest edit distance to `word`; "" if `names` is empty.
std::string nearest_name(const std::string& word, const std::vector<std::string>& names);

// Where `name` stands in `names`. Raises UsageError where it does not; `what` is what they are names of.
size_t position_of(const std::string& name, const std::vector<std::string>& names, const char* what);

// "a, b, c"
std::string join(const std::vector<std::string>& names, const std::string& separator = ", ");

}  // namespace sparsight
