// Looks at every file and every image of a dataset and lists all that is wrong.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sparsight/data/locate.h"

namespace sparsight {

struct Verification {
  int64_t images = 0;                 // that decode
  int64_t files = 0;                  // whose checksum is right
  std::vector<std::string> problems;  // one line each
};

// `progress` is called from several threads with (done, total). What is checked: the checksums that a SHA256SUMS file
// beside the data lists (`data fetch` writes one), what opening the set checks, and that every image decodes.
Verification verify_set(const LocatedSet& set, const std::function<void(int64_t, int64_t)>& progress);

}  // namespace sparsight
