// Gathers token rows for the experts (permute) and scatter-adds them back (combine). A row belongs to one assignment
// (token, expert); rows are grouped by expert. Sums run in a fixed order, so results have the same bits on every run
// and for any number of threads. Letters: moe/axes.md; R rows (kept assignments). T: float, double, or a half type that
// converts to and from float, in which sums are then.
#pragma once

#include <algorithm>
#include <numeric>
#include <type_traits>
#include <vector>

#include "sparsight/kernels/threads/tasks.h"

namespace sparsight::cpu {

// Which token each row holds, and which rows each token has.
struct RowNumbers {
  int64_t tokens = 0, rows = 0;            // N, R
  const int64_t* row_token = nullptr;      // [R], 0 .. N-1
  const int64_t* token_rows = nullptr;     // [R]: rows by token, in assignment order within a token
  const int64_t* token_offsets = nullptr;  // [N+1]: token j has token_rows[token_offsets[j] .. token_offsets[j+1])
};

// token: [A], the token of each assignment; order: [R], the assignment of each row. Writes the arrays of RowNumbers.
void number_rows(const int64_t* token, int64_t assignments, const int64_t* order, int64_t rows, int64_t tokens,
                 int64_t* row_token, int64_t* token_rows, int64_t* token_offsets);

template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

inline int64_t rows_of_task(int64_t width) { return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, width)); }

// values: [N,D]; out: [R,D]: weight[r] * values[row_token[r]]. weight: [R], or null for ones.
template <class T>
void gather_rows(Threads& threads, const RowNumbers& map, const T* values, const Wide<T>* weight, int64_t width,
                 T* out) {
  run_ranges(threads, map.rows, rows_of_task(width), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* source = values + map.row_token[r] * width;
      if (!weight) {
        std::copy_n(source, width, out + r * width);
        continue;
      }
      for (int64_t d = 0; d < width; ++d)
        out[r * width + d] = static_cast<T>(weight[r] * static_cast<Wide<T>>(source[d]));
    }
  });
}

// rows: [R,D]; out: [N,D]: the sum of weight[r] * rows[r] over the rows of each token; 0 for a token without rows.
template <class T>
void scatter_add_rows(Threads& threads, const RowNumbers& map, const T* rows, const Wide<T>* weight, int64_t width,
                      T* out) {
  using Sum = Wide<T>;
  run_ranges(threads, map.tokens, rows_of_task(width), [&](int64_t begin, int64_t end) {
    std::vector<Sum> sum(static_cast<size_t>(width));
    for (int64_t j = begin; j < end; ++j) {
      std::fill(sum.begin(), sum.end(), Sum{0});
      for (int64_t i = map.token_offsets[j]; i < map.token_offsets[j + 1]; ++i) {
        const T* source = rows + map.token_rows[i] * width;
        const Sum factor = weight ? weight[map.token_rows[i]] : Sum{1};
        for (int64_t d = 0; d < width; ++d) sum[static_cast<size_t>(d)] += factor * static_cast<Sum>(source[d]);
      }
      for (int64_t d = 0; d < width; ++d) out[j * width + d] = static_cast<T>(sum[static_cast<size_t>(d)]);
    }
  });
}

// Eight sums side by side: a fixed order that the compiler can vectorise.
template <class T>
Wide<T> dot_in_lanes(const T* a, const T* b, int64_t width) {
  Wide<T> lanes[8] = {};
  int64_t d = 0;
  for (; d + 8 <= width; d += 8)
    for (int lane = 0; lane < 8; ++lane)
      lanes[lane] += static_cast<Wide<T>>(a[d + lane]) * static_cast<Wide<T>>(b[d + lane]);
  for (; d < width; ++d) lanes[0] += static_cast<Wide<T>>(a[d]) * static_cast<Wide<T>>(b[d]);
  return std::accumulate(lanes, lanes + 8, Wide<T>{0});
}

// rows: [R,D], values: [N,D]; out: [R]: <rows[r], values[row_token[r]]>.
template <class T>
void dot_rows(Threads& threads, const RowNumbers& map, const T* rows, const T* values, int64_t width, Wide<T>* out) {
  run_ranges(threads, map.rows, rows_of_task(width), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      out[r] = dot_in_lanes(rows + r * width, values + map.row_token[r] * width, width);
  });
}

}  // namespace sparsight::cpu
