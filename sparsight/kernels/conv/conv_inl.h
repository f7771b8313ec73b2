// Convolutions with packed weights (conv_task.h) on the register tiles of gemm_panels, whose rows start anywhere. Over
// a vector type V. Included by isa/level_inl.h.
#pragma once

#include "sparsight/kernels/conv/conv_task.h"
#include "sparsight/kernels/gemm/tile_inl.h"

namespace sparsight::cpu {
namespace {

// Some rows of a ConvProduct, and the columns of some panels.
struct ConvTile {
  Tile tile;
  const float* const* a;
  const int64_t* c_rows;
  int64_t runs, run, run_stride;
  float* residual;  // only read
  bool relu;
};

template <class V, class W, int kMr, int kNv>
void run_conv_tile(const ConvTile& t) {
  using T = typename V::T;
  using Block = TileOfC<V, kMr, kNv, ListedRows>;
  const Block c(t.tile, ListedRows{t.tile.c, t.c_rows});
  T acc[kMr][kNv];
  if (t.residual) {
    Tile from = t.tile;
    from.start = Start::c;
    Block(from, ListedRows{t.residual, t.c_rows}).begin(acc);
    c.each([&](int i, int v) { acc[i][v] = V::add(acc[i][v], c.load(t.tile.bias, v)); });
  } else {
    c.begin(acc);
  }
  const W* b = static_cast<const W*>(t.tile.b);
  for (int64_t run = 0; run < t.runs; ++run) {
    const float* a[kMr];
#pragma GCC unroll 32
    for (int i = 0; i < kMr; ++i) a[i] = t.a[i] + run * t.run_stride;
    for (int64_t l = 0; l < t.run; ++l, b += kPanelColumns)
      multiply_add<V, kMr, kNv>(
          acc, [&](int i) { return a[i][l]; },
          [&](int v) { return V::load(b + v / one_panel<V>() * t.tile.b_panel + v % one_panel<V>() * V::lanes); });
  }
  if (t.relu) c.each([&](int i, int v) { acc[i][v] = V::max(V::set1(0.0f), acc[i][v]); });
  c.end(acc);
}

template <class V, class W, int kVectors, int... kRows>
auto select_conv_tile(int64_t rows, std::integer_sequence<int, kRows...>) {
  static constexpr void (*table[])(const ConvTile&) = {run_conv_tile<V, W, kRows + 1, kVectors>...};
  return table[rows - 1];
}

// Computes tiles of up to kMax rows.
template <class V, class W, int kMax>
void conv_over_panels(const ConvProduct& p) {
  constexpr int kVectors = V::panel_vectors(kMax), kOne = one_panel<V>();
  constexpr auto kCounts = std::make_integer_sequence<int, kMax>{};
  constexpr int64_t kAcross = kVectors / kOne;
  const int64_t panels = (p.n + kPanelColumns - 1) / kPanelColumns;
  const RowGroups groups(p.m, kMax);
  ConvTile t{};
  t.tile.b_panel = p.b_panel;
  t.tile.start = p.first ? Start::bias : Start::c;
  t.runs = p.runs, t.run = p.run, t.run_stride = p.run_stride;
  t.relu = p.relu;
  for (int64_t panel = 0; panel < panels;) {
    const int64_t here = panel + kAcross <= panels ? kAcross : 1, j = panel * kPanelColumns;
    t.tile.b = static_cast<const W*>(p.b) + panel * p.b_panel;
    t.tile.columns = min(here * kPanelColumns, p.n - j);
    t.tile.bias = p.bias + j;
    t.tile.c = p.c + j;
    t.residual = p.first && p.residual ? const_cast<float*>(p.residual) + j : nullptr;
    for (int64_t g = 0; g < groups.count; ++g) {
      t.a = p.a + groups.first(g), t.c_rows = p.c_rows + groups.first(g);
      const int64_t rows = groups.rows(g);
      (here == kAcross ? select_conv_tile<V, W, kVectors>(rows, kCounts)
                       : select_conv_tile<V, W, kOne>(rows, kCounts))(t);
    }
    panel += here;
  }
}

// The number of rows of the tiles with more vectors than the tallest have.
template <class V>
constexpr int rows_of_wider_tiles() {
  int rows = V::panel_rows;
  while (rows > 1 && V::panel_vectors(rows) == V::panel_vectors(V::panel_rows)) --rows;
  return rows;
}

// Wider tiles, which write more of a row of C at once, where no panel is left over.
template <class V, class W>
void conv_in_tiles(const ConvProduct& p) {
  constexpr int kWider = rows_of_wider_tiles<V>();
  constexpr int64_t kColumns = V::panel_vectors(kWider) * V::lanes;
  (p.n % kColumns == 0 ? conv_over_panels<V, W, kWider> : conv_over_panels<V, W, V::panel_rows>)(p);
}

template <class V>
void convolve(const ConvProduct& p) {
  if (p.m == 0 || p.n == 0) return;
  if (p.b_type == WeightType::bf16)
    conv_in_tiles<V, uint16_t>(p);
  else
    conv_in_tiles<V, float>(p);
}

template <class V>
void scale_shift(const ScaleShift& p) {
  using T = typename V::T;
  const T zero = V::set1(0.0f);
  const auto at = [&](const auto& load, const auto& store) {
    for (int64_t r = 0; r < p.rows; ++r) {
      const float *x = p.x + r * p.ld, *residual = p.residual ? p.residual + r * p.ld : nullptr;
      T y = V::fma(load(x), load(p.scale), load(p.shift));
      if (residual) y = V::add(y, load(residual));
      store(p.y + r * p.ld, p.relu ? V::max(zero, y) : y);
    }
  };
  for (int64_t c = 0; c < p.width; c += V::lanes) {
    const int count = static_cast<int>(min(V::lanes, p.width - c));
    if (count == V::lanes)
      at([c](const float* from) { return V::load(from + c); }, [c](float* to, T y) { V::store(to + c, y); });
    else
      at([c, count](const float* from) { return V::load_part(from + c, count); },
         [c, count](float* to, T y) { V::store_part(to + c, y, count); });
  }
}

}  // namespace
}  // namespace sparsight::cpu
