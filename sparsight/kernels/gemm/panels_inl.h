// GEMMs with packed weights in panels (packed_layout.h; diagram: docs/kernels.md, "Packed weights"): each panel is one
// contiguous stream and stays in L1 while it is multiplied with all rows. Chosen for all weights packed as panels: bf16
// is widened to fp32 in registers or multiplied with rows in bf16, int8 is multiplied with rows in int8. Over a vector
// type V. Included by isa/level_inl.h.
#pragma once

#include "sparsight/kernels/elementwise/integers_inl.h"
#include "sparsight/kernels/gemm/bf16_tile_inl.h"
#include "sparsight/kernels/gemm/tile_inl.h"

namespace sparsight::cpu {
namespace {

template <class V, int kMr, int kNv>
constexpr TileFunction integer_tile() {
  if constexpr (requires { V::template integer_tile<kMr, kNv>; })
    return V::template integer_tile<kMr, kNv>;
  else
    return run_integer_tile<V, kMr, kNv>;
}

template <class V, class W, int kMr, int kNv>
constexpr TileFunction tile_over_panels() {
  if constexpr (std::is_same_v<W, int8_t>)
    return integer_tile<V, kMr, kNv>();
  else if constexpr (std::is_same_v<W, Bf16Pairs>)
    return V::template bf16_tile<kMr, kNv>;
  else if constexpr (std::is_same_v<W, uint16_t>)
    return run_widened_tile<V, kMr, kNv>;
  else
    return run_tile<V, kMr, kNv, Source::panels>;
}

// The micro-kernel for a number of rows. lone_panel_tile: for a product of one row group, as wide as this number of
// rows allows. panel_tile: kVectors wide, which is as wide as V::panel_rows rows allow, or one panel.
template <class V, class W, int... kRows>
TileFunction lone_panel_tile(int64_t rows, std::integer_sequence<int, kRows...>) {
  static constexpr TileFunction table[] = {tile_over_panels<V, W, kRows + 1, V::panel_vectors(kRows + 1)>()...};
  return table[rows - 1];
}
template <class V, class W, int kVectors, int... kRows>
TileFunction panel_tile(int64_t rows, std::integer_sequence<int, kRows...>) {
  static constexpr TileFunction table[] = {tile_over_panels<V, W, kRows + 1, kVectors>()...};
  return table[rows - 1];
}

constexpr int64_t kUnfetchedRows = 4;  // up to here the hardware prefetcher is faster, see below

// Rows of A in bf16 or quantised, where weights of type W are multiplied with such.
struct RoundedRows {
  explicit RoundedRows(float* space)
      : start(reinterpret_cast<int32_t*>(space)),
        scale(space + kRoundedRows),
        numbers(reinterpret_cast<int16_t*>(space + 2 * kRoundedRows)) {}
  int32_t* start;  // of sums, and
  float* scale;    // of quantised rows
  int16_t* numbers;
};
template <class V, class W>
void round_rows(const float* a, int64_t rows, int64_t depth, const RoundedRows& to) {
  for (int64_t i = 0; i < rows; ++i) {
    if constexpr (std::is_same_v<W, int8_t>) {
      auto* const row = reinterpret_cast<typename V::Quantised*>(to.numbers + i * kBlock);
      to.scale[i] = quantise_row<V>(a + i * kBlockLd, depth, row);
      to.start[i] = V::start_of_sums(row, depth);
    } else if constexpr (std::is_same_v<W, Bf16Pairs>) {
      bf16_row<V>(a + i * kBlockLd, depth, to.numbers + i * kBlock);
    }
  }
}

// space: scratch of panel_floats, used where rows are rounded (int8 and Bf16Pairs), which takes up to kRoundedRows
// rows.
template <class V, class W>
void gemm_panels(const Gemm& p, float* space) {
  constexpr int64_t kSize = sizeof(W), kRow = kPanelColumns * kSize, kStep = 4 / kSize;
  constexpr int kMax = V::panel_rows, kOne = one_panel<V>();
  constexpr auto kCounts = std::make_integer_sequence<int, kMax>{};
  const W* const weights = static_cast<const W*>(p.b);
  const RoundedRows rounded(space);
  const UnitGroups groups(p.m, kMax, V::panel_row_unit);
  const bool lone = groups.count() == 1;
  const int64_t across = V::panel_vectors(lone ? static_cast<int>(p.m) : kMax) / kOne;
  const int64_t panels = (p.n + kPanelColumns - 1) / kPanelColumns, whole = panels / across * across;
  const int64_t rows_of_panel = p.b_panel_rows > 0 ? p.b_panel_rows : (p.k + kStep - 1) / kStep * kStep;
  const auto at = [&](int64_t panel, int64_t row) { return weights + (panel * rows_of_panel + row) * kPanelColumns; };
  for (int64_t k0 = 0; k0 < p.k || k0 == 0; k0 += kBlock) {
    const int64_t depth = min(kBlock, p.k - k0);
    const bool last = k0 + kBlock >= p.k;
    const float* const a = p.a + k0 / kBlock * p.a_block;
    round_rows<V, W>(a, p.m, depth, rounded);
    Tile t{};
    t.b_panel = rows_of_panel * kPanelColumns;
    t.depth = depth, t.c_ld = p.c_ld;
    t.start = k0 > 0 || p.accumulate ? Start::c : p.bias ? Start::bias : Start::zero;
    t.stream = p.stream && last;
    // While panels are multiplied, those that follow are prefetched one after the other, and at the end the next
    // product's. While M is so small that the product is memory-bound, this is left to the hardware prefetcher, which
    // is faster on contiguous streams.
    const auto upcoming = [&](const void* from, int64_t count) {
      return Fetch(p.m <= kUnfetchedRows ? nullptr : from, count, depth * kRow, rows_of_panel * kRow, Fetch::kLongPiece,
                   1);
    };
    Fetch fetch = upcoming(at(across, k0), max(0, panels - across));
    t.fetch = &fetch;
    t.every = max(1, groups.count() * Fetch::kLongPiece / (across * kStep * kRow));
    for (int64_t panel = 0; panel < panels;) {
      const int64_t here = panel < whole ? across : 1, j = panel * kPanelColumns;
      t.b = at(panel, k0);
      t.columns = min(here * kPanelColumns, p.n - j);
      t.bias = p.bias ? p.bias + j : nullptr;
      t.scale = p.b_scale ? p.b_scale + j : nullptr;
      if (panel + here == panels) {
        fetch =
            last && p.prefetch_whole ? Fetch::of_whole(p) : upcoming(last ? p.prefetch : at(0, k0 + kBlock), across);
        t.every = fetch.every(groups.count() * depth / kStep);
      }
      for (int64_t g = 0; g < groups.count(); ++g) {
        const int64_t i = groups.first(g), rows = groups.rows(g);
        t.a = a + i * kBlockLd;
        t.rounded = rounded.numbers + i * kBlock;
        t.row_start = rounded.start + i;
        t.row_scale = rounded.scale + i;
        t.c = p.c + j / kBlock * p.c_block + i * p.c_ld + j % kBlock;
        (here < across ? panel_tile<V, W, kOne>(rows, kCounts)
         : lone        ? lone_panel_tile<V, W>(rows, kCounts)
                       : panel_tile<V, W, V::panel_vectors(kMax)>(rows, kCounts))(t);
      }
      panel += here;
    }
  }
  finish_blocks<V>(p, p.n);
}

// Calls multiply() for up to kRoundedRows rows at a time.
template <class Multiply>
void in_row_parts(const Gemm& p, const Multiply& multiply) {
  Gemm part = p;
  for (int64_t i = 0; i < p.m; i += kRoundedRows) {
    part.m = min(kRoundedRows, p.m - i);
    part.a = p.a + i * kBlockLd;
    part.c = p.c + i * p.c_ld;
    part.pre_activation = p.pre_activation ? p.pre_activation + i * p.pre_activation_ld : nullptr;
    multiply(part);
  }
}

template <class V>
void gemm_panels_any(const Gemm& p, float* space) {
  if (p.b_type == WeightType::fp32) return gemm_panels<V, float>(p, space);
  if (p.b_type == WeightType::bf16) return gemm_panels<V, uint16_t>(p, space);
  in_row_parts(p, [space](const Gemm& part) { gemm_panels<V, int8_t>(part, space); });
}

}  // namespace
}  // namespace sparsight::cpu
