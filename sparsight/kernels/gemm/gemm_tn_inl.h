// The tn GEMM (A transposed), C = A^T B over the rows of an expert: gradients of weights. Its depth is the number of
// those rows. While it is short, writing C decides the speed: there is a variant for that. From kDeep on columns of A
// are transposed into rows, for the tiled kernel. Over a vector type V. Included by isa/level_inl.h.
#pragma once

#include <utility>

#include "sparsight/kernels/gemm/tile_inl.h"
#include "sparsight/kernels/gemm/tiled_inl.h"
#include "sparsight/kernels/pack/pack_inl.h"

namespace sparsight::cpu {
namespace {

// Computes the tiles of kMr rows from `row` to `end`, one below the other, in one call: with a short depth each is
// little work, and there are many. partial: [rows, columns of the tile], sums to start from; or null.
template <class V, int kMr, int kNv>
void outer_tiles(const Tile& t, const float* partial, int64_t row, int64_t end) {
  using T = typename V::T;
  for (; row < end; row += kMr) {
    const TileOfC<V, kMr, kNv> c(t, row);
    T acc[kMr][kNv];
    const float *a = t.a + row, *b = static_cast<const float*>(t.b);
    const auto step = [&](const auto& added) __attribute__((always_inline)) {
      T bv[kNv];
#pragma GCC unroll 32
      for (int v = 0; v < kNv; ++v) bv[v] = V::load(b + v * V::lanes);
#pragma GCC unroll 32
      for (int i = 0; i < kMr; ++i) {
        const auto av = V::set1(a[i]);
#pragma GCC unroll 32
        for (int v = 0; v < kNv; ++v) acc[i][v] = added(av, bv[v], acc[i][v]);
      }
      a += t.a_ld;
      b += t.b_ld;
    };
    int64_t l = 0;
    if (partial) {
      c.each([&](int i, int v) { acc[i][v] = V::load(partial + ((row + i) * kNv + v) * V::lanes); });
    } else if (t.start == Start::zero && t.depth > 0) {
      step([](T x, T y, T) { return V::mul(x, y); });
      ++l;
    } else {
      c.begin(acc);
    }
    for (const int64_t depth = t.depth; l < depth; ++l) step([](T x, T y, T sum) { return V::fma(x, y, sum); });
    c.end(acc);
  }
}
template <class V, int kNv, int... kRows>
auto select_outer_tiles(int64_t rows, std::integer_sequence<int, kRows...>) {
  static constexpr void (*table[])(const Tile&, const float*, int64_t, int64_t) = {outer_tiles<V, kRows + 1, kNv>...};
  return table[rows - 1];
}

template <class V, TileShape kShape>
void outer_rows(const Tile& t, const float* partial, int64_t rows) {
  constexpr auto kCounts = std::make_integer_sequence<int, kShape.rows>{};
  const RowGroups groups(rows, kShape.rows);
  const int64_t longer = groups.first(groups.longer);
  select_outer_tiles<V, kShape.vectors>(groups.max_rows, kCounts)(t, partial, 0, longer);
  if (groups.longer < groups.count)
    select_outer_tiles<V, kShape.vectors>(groups.max_rows - 1, kCounts)(t, partial, longer, rows);
}

// A longer depth is split into parts of at most kOuterDepth, for kOuterRows rows of C at a time: what their tiles read
// fits into L1 together with the partial sums.
constexpr int64_t kOuterDepth = 64, kOuterRows = 48;

// A product of short depth is memory-bound, and C is written faster if only some of its rows are written at a time.
template <class V, TileShape kShape>
void gemm_tn_in(const Gemm& p, float* panel) {
  constexpr int64_t kColumns = kShape.vectors * V::lanes;
  float* const packed = panel;                            // [kOuterDepth,kColumns] of B
  float* const partial = panel + kOuterDepth * kColumns;  // [kOuterRows,kColumns]
  static_assert((kOuterDepth + kOuterRows) * kColumns <= panel_floats<V>());
  const int64_t parts = max(1, (p.k + kOuterDepth - 1) / kOuterDepth), depth = (p.k + parts - 1) / parts;
  const int64_t maximum = parts > 1 ? kOuterRows : 16 * V::tile(true).rows;
  const bool adds_to_c = parts > 1 && p.accumulate;  // the first part starts from a copy of C in `partial`
  Tile t{};
  t.a_ld = p.a_ld;
  t.start = p.accumulate ? Start::c : p.bias ? Start::bias : Start::zero;
  for (int64_t i = 0; i < p.m; i += maximum)
    for (int64_t j = 0; j < p.n; j += kColumns) {
      const int64_t rows = min(maximum, p.m - i);
      float* const c = p.c + j / kBlock * p.c_block + i * p.c_ld + j % kBlock;
      t.columns = min(kColumns, p.n - j);
      t.bias = p.bias ? p.bias + j : nullptr;
      if (adds_to_c)
        for (int64_t row = 0; row < rows; ++row)
          std::memcpy(partial + row * kColumns, c + row * p.c_ld, static_cast<size_t>(t.columns) * sizeof(float));
      for (int64_t part = 0; part < parts; ++part) {
        const int64_t l = part * depth;
        const bool last = part + 1 == parts;
        const float* const b = static_cast<const float*>(p.b) + (p.b_transposed ? j * p.b_ld + l : l * p.b_ld + j);
        t.depth = min(depth, p.k - l);
        t.a = p.a + l * p.a_ld + i;
        t.b = b, t.b_ld = p.b_ld;
        if (p.b_transposed || t.columns < kColumns) {
          pack<V>(p.b_transposed, b, p.b_ld, t.depth, t.columns, kColumns, packed);
          t.b = packed, t.b_ld = kColumns;
        }
        t.c = last ? c : partial, t.c_ld = last ? p.c_ld : kColumns;
        t.stream = p.stream && last;
        outer_rows<V, kShape>(t, part > 0 || adds_to_c ? partial : nullptr, rows);
      }
    }
  finish_blocks<V>(p, p.n);
}

// Slices of the depth, and kTransposedRows rows of C at a time: the transposed slice of A stays in L2.
template <class V>
void gemm_tn_deep(const Gemm& p, float* panel) {
  float* const rows_of_a = panel + widest_panel_floats<V>();  // [kTransposedRows,kBlockLd]
  const RowGroups groups(p.m, kTransposedRows);
  for (int64_t l = 0; l < p.k; l += kBlock)
    for (int64_t g = 0; g < groups.count; ++g) {
      const int64_t i = groups.first(g);
      const bool last = l + kBlock >= p.k;
      Gemm slice = p;
      slice.m = groups.rows(g), slice.k = min(kBlock, p.k - l);
      pack_transposed<V>(p.a + l * p.a_ld + i, p.a_ld, slice.m, slice.k, kBlockLd, rows_of_a);
      slice.a = rows_of_a, slice.a_transposed = false, slice.a_block = slice.m * kBlockLd;
      slice.b = static_cast<const float*>(p.b) + (p.b_transposed ? l : l * p.b_ld);
      slice.c += i * p.c_ld;
      slice.accumulate = l > 0 || p.accumulate;
      if (l > 0) slice.bias = nullptr;
      slice.stream = p.stream && last;
      slice.activates = p.activates && last;
      if (p.pre_activation) slice.pre_activation += i * p.pre_activation_ld;
      if (!last || g + 1 < groups.count) slice.prefetch = nullptr;
      multiply<V>(slice, panel);
    }
}

// Up to a depth of kFewest, tiles have one row and 12 vectors, so that C is written in pieces as long as the registers
// allow: writing shorter ones takes up to twice as long.
template <class V>
void gemm_tn(const Gemm& p, float* panel) {
  constexpr TileShape kLong{1, 12};
  constexpr int64_t kFewest = 8, kDeep = 128, kFewRows = 24;
  if (p.k >= kDeep && p.m >= kFewRows)
    gemm_tn_deep<V>(p, panel);
  else if (p.k <= kFewest && p.n % (kLong.vectors * V::lanes) == 0)
    gemm_tn_in<V, kLong>(p, panel);
  else
    gemm_tn_in<V, V::tile(true)>(p, panel);
}

}  // namespace
}  // namespace sparsight::cpu
