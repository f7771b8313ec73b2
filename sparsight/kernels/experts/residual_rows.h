// A residual sum in a product's epilogue, on the rows of one task while they are in the cache. Without a drop the sums
// of the product start from the residual; with one they are scaled before it is added.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "sparsight/kernels/kernels.h"

namespace sparsight::cpu {

// Letters: moe/axes.md; R rows, O their width.
struct ResidualRows {
  const float* residual = nullptr;    // [R,O], or null for zeros
  const uint8_t* bits = nullptr;      // [R,ceil(O/8)], of a dropout (random/dropout_bits.h); or null
  float scale = 1;                    // of the elements that it keeps
  const float* row_factor = nullptr;  // [R], or null for ones
  int64_t width = 0;                  // O

  bool drops() const { return bits || row_factor; }

  // p: a product whose row-major C is the rows from `first` on, neither accumulating nor with an activation yet.
  void start(const Kernels& kernels, int64_t first, Gemm& p) const {
    if (!residual || drops()) return;
    for (int64_t i = 0; i < p.m; ++i) {
      std::copy_n(residual + (first + i) * width, width, p.c + i * p.c_ld);
      if (p.bias) kernels.add_scaled(1, p.bias, p.c + i * p.c_ld, width);
    }
    p.accumulate = true;
    p.bias = nullptr;
  }

  // rows: `count` finished rows from `first` on, [count,O].
  void finish(const Kernels& kernels, int64_t first, int64_t count, float* rows) const {
    if (!drops()) return;
    const int64_t bytes = (width + 7) / 8;
    for (int64_t i = first; i < first + count; ++i, rows += width) {
      if (bits) kernels.drop(bits + i * bytes, scale, rows, width);
      const std::array<float, 2> factors{row_factor ? row_factor[i] : 1.0f, 1.0f};
      const std::array<const float*, 2> summands{rows, residual ? residual + i * width : nullptr};
      if (row_factor || residual) kernels.scaled_sum(summands.data(), factors.data(), residual ? 2 : 1, rows, width);
    }
  }
};

}  // namespace sparsight::cpu
