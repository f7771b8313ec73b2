#include "sparsight/reproduce/sample_search.h"

namespace sparsight {

std::optional<int64_t> smallest_size(const std::vector<int64_t>& sizes,
                                     const std::function<bool(int64_t size)>& success) {
  size_t below = 0, from = sizes.size();  // sizes before `below` fail, those from `from` on succeed
  while (below < from) {
    const size_t middle = (below + from) / 2;
    if (success(sizes[middle]))
      from = middle;
    else
      below = middle + 1;
  }
  return from < sizes.size() ? std::optional(sizes[from]) : std::nullopt;
}

}  // namespace sparsight
