// Rows of activations in blocks of columns, the input of products (kernels.h).
#pragma once

#include <algorithm>
#include <cstdint>

#include "sparsight/kernels/kernels.h"

namespace sparsight::cpu {

inline int64_t blocks_floats(int64_t columns, int64_t rows) { return count_blocks(columns) * rows * kBlockLd; }

// Writes rows [rows,width] as blocks.
inline void to_blocks(const float* from, int64_t rows, int64_t width, float* to) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < width; c += kBlock)
      std::copy_n(from + r * width + c, std::min(kBlock, width - c), to + c / kBlock * rows * kBlockLd + r * kBlockLd);
}

}  // namespace sparsight::cpu
