// The message of the error that a piece of code raises.
#pragma once

#include <string>

#include "sparsight/core/error.h"

namespace sparsight::testing {

// "" if `code` raises no `Kind` (other errors pass through).
template <class Kind = Error, class Code>
std::string error_text(Code code) {
  try {
    code();
  } catch (const Kind& error) {
    return error.what();
  }
  return "";
}

}  // namespace sparsight::testing
