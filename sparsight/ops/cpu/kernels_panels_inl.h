// Products with weights that lie in panels (held_layout.h): each panel is a stream of memory, and while it is
// multiplied with all rows it stays in the first-level cache. Over a vector type V. Included by kernels_inl.h.
#pragma once

#include "sparsight/ops/cpu/kernels_tile_inl.h"

namespace sparsight::cpu {
namespace {

template <class V>
constexpr int one_panel() {
  return static_cast<int>(kPanelColumns) / V::lanes;
}

// The tile functions by number of rows: as wide as so many rows alone allow; as wide as V::panel_rows rows allow; and
// one panel wide.
template <class V, class W, int... kRows>
TileFunction lone_panel_tile(int64_t rows, std::integer_sequence<int, kRows...>) {
  static constexpr TileFunction table[] = {
      run_tile<V, W, kRows + 1, V::panel_vectors(kRows + 1), false, Source::panels>...};
  return table[rows - 1];
}
template <class V, class W, int kVectors, int... kRows>
TileFunction panel_tile(int64_t rows, std::integer_sequence<int, kRows...>) {
  static constexpr TileFunction table[] = {run_tile<V, W, kRows + 1, kVectors, false, Source::panels>...};
  return table[rows - 1];
}

template <class V, class W>
void multiply_panels(const Product& p) {
  constexpr int64_t kSize = sizeof(W), kRow = kPanelColumns * kSize;
  constexpr int kMost = V::panel_rows, kOne = one_panel<V>();
  constexpr auto kCounts = std::make_integer_sequence<int, kMost>{};
  const W* const weights = static_cast<const W*>(p.b);
  const RowGroups groups(p.m, kMost);
  const bool lone = groups.count == 1;
  const int64_t across = V::panel_vectors(lone ? static_cast<int>(p.m) : kMost) / kOne;
  const int64_t panels = (p.n + kPanelColumns - 1) / kPanelColumns, whole = panels / across * across;
  for (int64_t k0 = 0; k0 < p.k || k0 == 0; k0 += kBlock) {
    const int64_t depth = least(kBlock, p.k - k0);
    const bool last = k0 + kBlock >= p.k;
    Tile t{};
    t.b_panel = p.k * kPanelColumns;
    t.depth = depth;
    t.c_ld = p.c_ld;
    t.start = k0 > 0 || p.accumulate ? Start::c : p.bias ? Start::bias : Start::zero;
    t.stream = p.stream && last;
    for (int64_t panel = 0; panel < panels;) {
      const int64_t here = panel < whole ? across : 1, j = panel * kPanelColumns;
      const auto at = [&](int64_t number, int64_t row) { return weights + (number * p.k + row) * kPanelColumns; };
      t.b = at(panel, k0);
      t.columns = least(here * kPanelColumns, p.n - j);
      t.bias = p.bias ? p.bias + j : nullptr;
      t.scale = p.b_scale ? p.b_scale + j : nullptr;
      // While panels are at work those that follow are fetched. One or two rows read several panels side by side, which
      // the processor fetches by itself, and faster.
      const void* const soon = p.m <= 2                ? nullptr
                               : panel + here < panels ? at(panel + here, k0)
                               : last                  ? p.next
                                                       : at(0, k0 + kBlock);
      Fetch fetch(soon, here, depth * kRow, p.k * kRow, piece_bytes<V, W>(static_cast<int>(here) * kOne));
      t.fetch = &fetch;
      t.every = fetch.every(groups.count * depth);
      for (int64_t g = 0; g < groups.count; ++g) {
        const int64_t i = groups.first(g), rows = groups.rows(g);
        t.a = p.a + k0 / kBlock * p.a_block + i * kBlockLd;
        t.c = p.c + j / kBlock * p.c_block + i * p.c_ld + j % kBlock;
        (here < across ? panel_tile<V, W, kOne>(rows, kCounts)
         : lone        ? lone_panel_tile<V, W>(rows, kCounts)
                       : panel_tile<V, W, V::panel_vectors(kMost)>(rows, kCounts))(t);
      }
      if (last) finish<V>(p, j, t.columns);
      panel += here;
    }
  }
}

template <class V>
void multiply_panels_any(const Product& p) {
  if (p.b_type == WeightType::bf16)
    multiply_panels<V, uint16_t>(p);
  else if (p.b_type == WeightType::int8)
    multiply_panels<V, int8_t>(p);
  else
    multiply_panels<V, float>(p);
}

}  // namespace
}  // namespace sparsight::cpu
