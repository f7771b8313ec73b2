// How the product of many rows with a matrix is split into tasks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sparsight/kernels/kernels.h"
#include "sparsight/kernels/threads/tasks.h"

namespace sparsight::engine {

inline int64_t rows_at_once() { return cpu::kernels().task_rows; }  // of a task
constexpr int64_t kColumnGrain = 96;  // columns of a task are a multiple of this, which all tiles divide evenly

struct Columns {
  int64_t first, count;
};

// Groups of `rows` rows of nearly equal size, and of columns.
struct RowGrid {
  cpu::Threads& threads;
  int64_t rows, columns, row_parts = 1, column_parts = 1;
  RowGrid(cpu::Threads& on, int64_t all_rows, int64_t all_columns) : threads(on), rows(all_rows), columns(all_columns) {
    const int64_t at_once = rows_at_once(), tasks = threads.count();
    row_parts = (rows + at_once - 1) / at_once;
    const int64_t grains = (columns + kColumnGrain - 1) / kColumnGrain;
    column_parts = std::clamp<int64_t>((tasks + row_parts - 1) / row_parts, 1, grains);
  }
  template <class Body>
  void run(const Body& body) const {
    cpu::run_tasks(threads, row_parts * column_parts, [&](int64_t task, const auto&) {
      const int64_t i = task / column_parts, j = task % column_parts;
      const int64_t grains = (columns + kColumnGrain - 1) / kColumnGrain;
      const int64_t first = rows * i / row_parts, left = grains * j / column_parts * kColumnGrain;
      const int64_t right = std::min(columns, grains * (j + 1) / column_parts * kColumnGrain);
      body(first, rows * (i + 1) / row_parts - first, Columns{left, right - left});
    });
  }
};

}  // namespace sparsight::engine
