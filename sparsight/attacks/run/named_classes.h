// Classes as a user names them: by name, or by number.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sparsight {

// The number of the class called `given` or, if none is, that has it as its number, 0 to K - 1. Raises UsageError with
// the nearest name. classes: K names, in label order.
int64_t class_number(const std::string& given, const std::vector<std::string>& classes);

// Those of a list such as "cat,3", in order. Raises UsageError naming `flag` for an empty entry, and for a class that
// is there twice. Classes with a comma in their name have to be given by number.
std::vector<int64_t> class_numbers(const std::string& list, const std::vector<std::string>& classes,
                                   const std::string& flag);

}  // namespace sparsight
