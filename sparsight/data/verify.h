// Checks every file and every image of a dataset and lists all problems.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sparsight/data/locate.h"

namespace sparsight {

struct Verification {
  int64_t images = 0;                 // that decode
  int64_t files = 0;                  // with the right checksum
  std::vector<std::string> problems;  // one line each
  int64_t looked_at = 0;              // images, whether they decode or not
  bool interrupted = false;           // not everything was looked at
};

// `progress` is called from several threads with (done, total). Checks the checksums of a SHA256SUMS file in the data's
// folder (`data fetch` writes one), the checks of opening the dataset, and that every image decodes. Ends early when
// interrupted() (core/interrupt.h).
Verification verify_set(const LocatedSet& set, const std::function<void(int64_t, int64_t)>& progress);

}  // namespace sparsight
