// The smallest number of samples with which training succeeds.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace sparsight {

// Bisects `sizes` (ascending): the first one that succeeds, assuming that all larger ones do too. Null if even the last
// one fails.
std::optional<int64_t> smallest_size(const std::vector<int64_t>& sizes,
                                     const std::function<bool(int64_t size)>& success);

}  // namespace sparsight
