// The smallest number of samples with which training succeeds more often than not.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace sparsight {

// Bisects `sizes` (ascending): the first one at which at least half of `trials` succeed, assuming that larger sizes do
// not succeed less often. Null if even the last one fails. success(size, trial) is called only until a size is decided.
std::optional<int64_t> smallest_size(const std::vector<int64_t>& sizes, int64_t trials,
                                     const std::function<bool(int64_t size, int64_t trial)>& success);

}  // namespace sparsight
