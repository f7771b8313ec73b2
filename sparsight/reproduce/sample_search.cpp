#include "sparsight/reproduce/sample_search.h"

namespace sparsight {

std::optional<int64_t> smallest_size(const std::vector<int64_t>& sizes, int64_t trials,
                                     const std::function<bool(int64_t size, int64_t trial)>& success) {
  const auto mostly = [&](int64_t size) {
    const int64_t needed = (trials + 1) / 2;
    int64_t successes = 0;
    for (int64_t trial = 0; trial < trials; ++trial) {
      successes += success(size, trial);
      if (successes >= needed) return true;
      if (successes + trials - trial - 1 < needed) return false;
    }
    return false;
  };
  size_t below = 0, from = sizes.size();  // sizes before `below` fail, those from `from` on succeed
  while (below < from) {
    const size_t middle = (below + from) / 2;
    if (mostly(sizes[middle]))
      from = middle;
    else
      below = middle + 1;
  }
  return from < sizes.size() ? std::optional(sizes[from]) : std::nullopt;
}

}  // namespace sparsight
