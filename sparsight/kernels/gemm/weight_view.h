// The matrices of a layer as the kernels read them.
#pragma once

#include <cstdint>

namespace sparsight::cpu {

// [E,rows,columns], in memory as they are or transposed ([E,columns,rows]). What is only read is not written through a
// view.
struct WeightView {
  float* data = nullptr;
  int64_t rows = 0, columns = 0;
  bool transposed = false;
  float* at(int64_t expert, int64_t row, int64_t column) const {
    return data + expert * rows * columns + (transposed ? column * rows + row : row * columns + column);
  }
  int64_t ld() const { return transposed ? rows : columns; }
  // The same numbers as matrices [E,columns,rows].
  WeightView t() const { return {data, columns, rows, !transposed}; }
};

}  // namespace sparsight::cpu
