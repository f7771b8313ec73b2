#include "sparsight/kernels/routing/rows.h"

#include <algorithm>
#include <vector>

#include "sparsight/kernels/memory/scratch.h"

namespace sparsight::cpu {

void number_rows(const int64_t* token, int64_t assignments, const int64_t* order, int64_t rows, int64_t tokens,
                 int64_t* row_token, int64_t* token_rows, int64_t* token_offsets) {
  std::pmr::vector<int64_t> assignment_to_row(static_cast<size_t>(assignments), -1, scratch());
  std::fill_n(token_offsets, tokens + 1, 0);
  for (int64_t r = 0; r < rows; ++r) {
    row_token[r] = token[order[r]];
    assignment_to_row[static_cast<size_t>(order[r])] = r;
    ++token_offsets[row_token[r] + 1];
  }
  for (int64_t j = 0; j < tokens; ++j) token_offsets[j + 1] += token_offsets[j];
  std::pmr::vector<int64_t> next(token_offsets, token_offsets + tokens, scratch());
  for (int64_t a = 0; a < assignments; ++a)
    if (const int64_t row = assignment_to_row[static_cast<size_t>(a)]; row >= 0)
      token_rows[next[static_cast<size_t>(token[a])]++] = row;
}

}  // namespace sparsight::cpu
