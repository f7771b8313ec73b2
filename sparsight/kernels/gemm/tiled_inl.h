// The GEMM of row-major A and plain B: blocks of the depth, panels of B, register tiles. Over a vector type V. Included
// by isa/level_inl.h and gemm/gemm_tn_inl.h.
#pragma once

#include <utility>

#include "sparsight/kernels/gemm/fetch_inl.h"
#include "sparsight/kernels/gemm/small_m_inl.h"
#include "sparsight/kernels/gemm/tile_inl.h"
#include "sparsight/kernels/pack/pack_inl.h"

namespace sparsight::cpu {
namespace {

// The tiled GEMM, for more rows than small-M takes: the arithmetic is the limit there, so tiles of C stay in registers
// and panels of B in the cache while all rows use them (diagram: docs/kernels.md, "Tiled kernel"). It also takes the
// columns that small-M leaves.
template <class V>
void multiply(const Gemm& p, float* panel) {
  constexpr TileShape kTile = V::tile(false);
  constexpr int kNr = kTile.vectors * V::lanes;
  constexpr auto kRowCounts = std::make_integer_sequence<int, kTile.rows>{};
  constexpr int64_t kSize = sizeof(float);
  const float* const weights = static_cast<const float*>(p.b);
  int64_t first = 0;
  if (p.b_transposed && p.m <= V::max_dots && !consistent_arithmetic()) return gemm_small_m_transposed<V>(p);
  if (!p.b_transposed && p.m <= V::max_small_m) first = gemm_small_m<V>(p);
  if (first == p.n) return;
  const RowGroups groups(p.m, kTile.rows);
  // The next panel of B is prefetched while the current one is multiplied; the last panel prefetches the next
  // product's.
  for (int64_t k0 = 0; k0 < p.k || k0 == 0; k0 += kBlock) {
    const int64_t depth = min(kBlock, p.k - k0);
    const bool last = k0 + kBlock >= p.k;
    const float* a = p.a + k0 / kBlock * p.a_block;
    const float* b = p.b_transposed ? weights + k0 : weights + k0 * p.b_ld;
    const auto b_at = [&](int64_t j) { return p.b_transposed ? b + j * p.b_ld : b + j; };
    Tile t{};
    t.depth = depth;
    t.c_ld = p.c_ld;
    t.start = k0 > 0 || p.accumulate ? Start::c : p.bias ? Start::bias : Start::zero;
    t.stream = p.stream && last;
    for (int64_t j = first; j < p.n; j += kNr) {
      const int64_t columns = min(kNr, p.n - j);
      const bool direct = !p.b_transposed && columns == kNr;
      if (!direct) pack<V>(p.b_transposed, b_at(j), p.b_ld, depth, columns, kNr, panel);
      t.columns = columns;
      t.bias = p.bias ? p.bias + j : nullptr;
      const auto upcoming = [&](const void* from, int64_t rows, int64_t length, int64_t ld) {
        return Fetch(from, rows, length * kSize, ld * kSize, kNr * kSize, p.streams);
      };
      Fetch fetch;
      if (j + kNr < p.n)
        fetch = p.b_transposed ? upcoming(b_at(j + kNr), min(kNr, p.n - j - kNr), depth, p.b_ld)
                               : upcoming(b_at(j + kNr), depth, kNr, p.b_ld);
      else if (!last && !p.b_transposed)
        fetch = upcoming(b + kBlock * p.b_ld, min(kBlock, p.k - k0 - kBlock), kNr, p.b_ld);
      else if (last && p.prefetch)
        fetch = p.prefetch_whole ? Fetch::of_whole(p)
                                 : upcoming(p.prefetch, min(kBlock, p.prefetch_rows), kNr, p.prefetch_ld);
      t.fetch = &fetch;
      t.every = fetch.every(groups.count * depth);
      for (int64_t g = 0; g < groups.count; ++g) {
        const int64_t i = groups.first(g), rows = groups.rows(g);
        t.a = a + i * kBlockLd;
        t.c = p.c + j / kBlock * p.c_block + i * p.c_ld + j % kBlock;
        const bool in_place = direct && g == 0;
        t.b = in_place ? b_at(j) : panel;
        t.b_ld = in_place ? p.b_ld : kNr;
        t.copy = panel;
        (in_place && groups.count > 1 ? select_tile<V, Source::rows_copied>(rows, kRowCounts)
                                      : select_tile<V, Source::rows>(rows, kRowCounts))(t);
      }
      if (last) finish<V>(p, j, columns);
    }
  }
}

}  // namespace
}  // namespace sparsight::cpu
