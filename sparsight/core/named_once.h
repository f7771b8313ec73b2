// Lists in which a user names each thing once.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"

namespace sparsight {

inline std::string shown_name(const std::string& name) { return printable(name); }
inline std::string shown_name(int64_t number) { return std::to_string(number); }

// Raises UsageError with the first name that is there twice. what: what they name, "algorithm".
template <class Name>
void check_named_once(const std::vector<Name>& names, const char* what) {
  std::set<Name> seen;
  for (const Name& name : names)
    if (!seen.insert(name).second) fail_usage("the ", what, " ", shown_name(name), " is named twice; give each once");
}

}  // namespace sparsight
