// Looks at many images on all cores.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "sparsight/data/data_set.h"

namespace sparsight {

struct Looks {
  int64_t done = 0;                         // less than all if interrupted
  std::map<int64_t, std::string> problems;  // what went wrong, by number of the image
};

// Calls `look` for 0 to count - 1, which raises Error for a problem, and `progress` with (done, count), both from
// several threads. Ends early when interrupted() (core/interrupt.h).
Looks look_at_all(int64_t count, const std::function<void(int64_t)>& look,
                  const std::function<void(int64_t, int64_t)>& progress);

// These parts without null ones and repetitions: one split may serve as two.
std::vector<DataSetPtr> distinct_parts(std::initializer_list<DataSetPtr> parts);

}  // namespace sparsight
