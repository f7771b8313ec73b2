#include "sparsight/attacks/run/named_classes.h"

#include <algorithm>
#include <charconv>

#include "sparsight/core/error.h"
#include "sparsight/core/named_once.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"

namespace sparsight {

int64_t class_number(const std::string& given, const std::vector<std::string>& classes) {
  SPARSIGHT_CHECK(!classes.empty());
  const auto found = std::ranges::find(classes, given);
  if (found != classes.end()) return found - classes.begin();
  int64_t number = -1;
  const char* end = given.data() + given.size();
  const auto [stop, error] = std::from_chars(given.data(), end, number);
  if (error == std::errc() && stop == end) {
    if (number >= 0 && number < std::ssize(classes)) return number;
    fail_usage("there is no class ", number, ": the numbers of the ", classes.size(), " classes are 0 to ",
               classes.size() - 1);
  }
  fail_usage("unknown class \"", printable(given), "\"", did_you_mean(nearest_name(given, classes)), " (the ",
             classes.size(), " classes are ", printable(classes.front()), " to ", printable(classes.back()),
             ", or 0 to ", classes.size() - 1, ")");
}

std::vector<int64_t> class_numbers(const std::string& list, const std::vector<std::string>& classes,
                                   const std::string& flag) {
  std::vector<int64_t> numbers;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t comma = std::min(list.find(',', begin), list.size());
    const std::string given = list.substr(begin, comma - begin);
    if (given.empty()) fail_usage(flag, " has an empty entry in \"", printable(list), "\"; give it as cat,dog or 3,5");
    numbers.push_back(class_number(given, classes));
    begin = comma + 1;
  }
  check_named_once(numbers, "class");
  return numbers;
}

}  // namespace sparsight
