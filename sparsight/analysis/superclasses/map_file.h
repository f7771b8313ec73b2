// Super-class maps as text files: one integer per line, line i is the super-class of class i.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sparsight {

inline constexpr int64_t kMaxMapClasses = 100'000;

// [K] super-class of each class, of 0 .. E-1, each used at least once. Raises Error with the file and the line for an
// empty file, a line that is not one whole number from 0, a super-class number that is skipped, and more than
// kMaxMapClasses lines. Spaces around a number, line ends of Windows and one missing line end are accepted.
std::vector<int64_t> read_superclass_map(const std::string& path);
// The map in a text; errors name `path`.
std::vector<int64_t> parse_superclass_map(std::string_view text, const std::string& path);

// Writes the file in one step: it is whole or absent. The map must be valid as above.
void write_superclass_map(const std::string& path, const std::vector<int64_t>& class_to_superclass);

// The number of super-classes: the largest entry plus 1; 0 for an empty map.
int64_t superclass_count(const std::vector<int64_t>& class_to_superclass);

}  // namespace sparsight
