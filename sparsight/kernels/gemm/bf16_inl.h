// GEMMs whose operands are rounded to bf16 and multiplied in pairs, for levels with such an instruction: each adds two
// products to a sum in fp32. Rows of A become bf16 once per block of the depth, B in the strips of columns in which
// tiles read it, unless it is packed that way (kernels.h, "Packed weights"). Over a vector type V. Included by
// isa/avx512_bf16.cpp.
#pragma once

#include <cstring>
#include <utility>

#include "sparsight/kernels/gemm/panels_inl.h"

namespace sparsight::cpu {
namespace {

// Pairs of rows of a strip, as a panel of packed weights has them: for each pair of rows, 16 columns of two numbers.
// All functions below write whole vectors of pairs, with zeros for what the operand lacks.

// b(l, j) = b[l * b_ld + j] for `depth` rows and up to V::lanes columns.
template <class V>
void pair_rows(const float* b, int64_t b_ld, int64_t depth, int columns, int16_t* pairs) {
  for (int64_t l = 0; l < depth; l += 2, b += 2 * b_ld, pairs += 2 * V::lanes)
    V::store_pairs(pairs, V::interleaved(load_some<V>(b, columns),
                                         l + 1 < depth ? load_some<V>(b + b_ld, columns) : V::set1(0.0f)));
}

// b(l, j) = b[j * b_ld + l]: pairs are contiguous in B; 16 x 16 of them are transposed.
template <class V>
void pair_columns(const float* b, int64_t b_ld, int64_t depth, int columns, int16_t* pairs) {
  constexpr int64_t kDeep = 2 * V::lanes;
  alignas(64) float across[V::lanes * V::lanes], down[V::lanes * V::lanes];
  for (int64_t l = 0; l < depth; l += kDeep) {
    const int64_t deep = min(kDeep, depth - l);
    for (int j = 0; j < V::lanes; ++j) {
      const float* const from = b + j * b_ld + l;
      const int some = j < columns ? static_cast<int>(deep) : 0;
      V::store_pairs(
          reinterpret_cast<int16_t*>(across + j * V::lanes),
          V::joined(load_some<V>(from, min(some, V::lanes)), load_some<V>(from + V::lanes, max(0, some - V::lanes))));
    }
    V::transpose(across, V::lanes, down, V::lanes);
    std::memcpy(pairs + l * V::lanes, down, static_cast<size_t>((deep + 1) / 2) * 2 * V::lanes * sizeof(int16_t));
  }
}

// Rows of a transposed A: A(i,l) = a[l * a_ld + i].
template <class V>
void bf16_columns(const float* a, int64_t a_ld, int64_t depth, int64_t rows, int16_t* to) {
  alignas(64) float pairs[V::lanes * V::lanes];
  for (int64_t i = 0; i < rows; i += V::lanes)
    for (int64_t l = 0; l < depth; l += 2 * V::lanes) {
      const int64_t deep = min(2 * V::lanes, depth - l), written = (deep + 1) / 2 * V::lanes;
      pair_rows<V>(a + l * a_ld + i, a_ld, deep, static_cast<int>(min(V::lanes, rows - i)),
                   reinterpret_cast<int16_t*>(pairs));
      for (int64_t p = written; p < V::lanes * V::lanes; ++p) pairs[p] = 0;
      V::transpose(pairs, V::lanes, reinterpret_cast<float*>(to + i * kBlock + l), kBlock / 2);
    }
}

// The rows of A of one block of the depth, as bf16 [rows,kBlock].
template <class V>
void rows_as_bf16(const Gemm& p, int64_t first, int64_t rows, int64_t l, int16_t* to) {
  const int64_t depth = min(kBlock, p.k - l);
  if (p.a_transposed) return bf16_columns<V>(p.a + l * p.a_ld + first, p.a_ld, depth, rows, to);
  for (int64_t i = 0; i < rows; ++i)
    bf16_row<V>(p.a + l / kBlock * p.a_block + (first + i) * kBlockLd, depth, to + i * kBlock);
}

// A strip of B as panels of 16 columns, `depth` deep.
template <class V>
void strip_as_bf16(const Gemm& p, int64_t l, int64_t j, int64_t columns, int64_t panel_stride, int16_t* to) {
  const int64_t depth = min(kBlock, p.k - l);
  const float* const b = static_cast<const float*>(p.b);
  for (int64_t c = 0; c < columns; c += V::lanes) {
    const int some = static_cast<int>(min(V::lanes, columns - c));
    int16_t* const panel = to + c / V::lanes * panel_stride;
    if (p.b_transposed)
      pair_columns<V>(b + (j + c) * p.b_ld + l, p.b_ld, depth, some, panel);
    else
      pair_rows<V>(b + l * p.b_ld + j + c, p.b_ld, depth, some, panel);
  }
}

template <class V>
void pack_bf16_panels(const PanelPacking& p) {
  int16_t* panel = static_cast<int16_t*>(p.panels);
  for (int64_t j = 0; j < p.columns; j += kPanelColumns, panel += (p.depth + 1) / 2 * 2 * kPanelColumns) {
    const int some = static_cast<int>(min(kPanelColumns, p.columns - j));
    if (p.transposed)
      pair_columns<V>(p.matrix + j * p.ld, p.ld, p.depth, some, panel);
    else
      pair_rows<V>(p.matrix + j, p.ld, p.depth, some, panel);
  }
}

// Scratch of gemm_bf16(): kBf16Rows rows of A, so that a strip of B is packed once for all of them, and the strip.
constexpr int64_t kBf16Rows = kBlock;
template <class V>
constexpr int64_t bf16_floats() {
  return (kBf16Rows + V::panel_vectors(V::panel_rows) * kPanelColumns) * kBlock / 2;
}

// At most kBf16Rows rows.
template <class V>
void gemm_bf16_rows(const Gemm& p, int64_t first, int64_t rows, float* space) {
  constexpr int kMax = V::panel_rows, kVectors = V::panel_vectors(kMax), kOne = one_panel<V>();
  constexpr int64_t kColumns = kVectors * V::lanes, kPanel = kBlock * kPanelColumns;
  constexpr auto kCounts = std::make_integer_sequence<int, kMax>{};
  static_assert(V::lanes == kPanelColumns);
  int16_t* const a = reinterpret_cast<int16_t*>(space);
  int16_t* const panels = a + kBf16Rows * kBlock;
  const UnitGroups groups(rows, kMax, V::panel_row_unit);
  for (int64_t l = 0; l < p.k || l == 0; l += kBlock) {
    rows_as_bf16<V>(p, first, rows, l, a);
    Fetch nothing;
    Tile t{};
    t.fetch = &nothing;
    t.depth = min(kBlock, p.k - l);
    t.every = t.depth + 1;
    t.b = panels, t.b_panel = kPanel;
    t.c_ld = p.c_ld;
    t.start = l > 0 || p.accumulate ? Start::c : p.bias ? Start::bias : Start::zero;
    t.stream = p.stream && l + kBlock >= p.k;
    for (int64_t j = 0; j < p.n; j += kColumns) {
      t.columns = min(kColumns, p.n - j);
      t.bias = p.bias ? p.bias + j : nullptr;
      strip_as_bf16<V>(p, l, j, t.columns, kPanel, panels);
      const bool narrow = t.columns <= kOne * V::lanes;
      for (int64_t g = 0; g < groups.count(); ++g) {
        const int64_t i = groups.first(g);
        t.rounded = a + i * kBlock;
        t.c = p.c + j / kBlock * p.c_block + (first + i) * p.c_ld + j % kBlock;
        (narrow ? panel_tile<V, Bf16Pairs, kOne>(groups.rows(g), kCounts)
                : panel_tile<V, Bf16Pairs, kVectors>(groups.rows(g), kCounts))(t);
      }
    }
  }
}

// B is not packed.
template <class V>
void gemm_bf16(const Gemm& p, float* space) {
  for (int64_t i = 0; i < p.m; i += kBf16Rows) gemm_bf16_rows<V>(p, i, min(kBf16Rows, p.m - i), space);
  finish_blocks<V>(p, p.n);
}

}  // namespace
}  // namespace sparsight::cpu
