#include "sparsight/kernels/routing/sort_by_expert.h"

#include <algorithm>
#include <vector>

#include "sparsight/kernels/memory/scratch.h"

namespace sparsight::cpu {

void count_by_expert(const int64_t* expert, int64_t assignments, int64_t* counts) {
  for (int64_t a = 0; a < assignments; ++a) ++counts[expert[a]];
}

void expert_offsets(const int64_t* expert, const bool* kept, int64_t assignments, int64_t experts, int64_t* offsets) {
  std::fill_n(offsets, experts + 1, 0);
  for (int64_t a = 0; a < assignments; ++a)
    if (kept[a]) ++offsets[expert[a] + 1];
  for (int64_t e = 0; e < experts; ++e) offsets[e + 1] += offsets[e];
}

void order_by_expert(const int64_t* expert, const bool* kept, int64_t assignments, int64_t experts,
                     const int64_t* offsets, int64_t* order) {
  std::pmr::vector<int64_t> next(offsets, offsets + experts, scratch());
  for (int64_t a = 0; a < assignments; ++a)
    if (kept[a]) order[next[static_cast<size_t>(expert[a])]++] = a;
}

}  // namespace sparsight::cpu
