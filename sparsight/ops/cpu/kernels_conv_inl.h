// Convolutions with packed weights (conv_task.h) on the register tiles of gemm_panels, whose rows start anywhere. Over
// a vector type V. Included by kernels_inl.h.
#pragma once

#include "sparsight/ops/cpu/conv_task.h"
#include "sparsight/ops/cpu/kernels_tile_inl.h"

namespace sparsight::cpu {
namespace {

constexpr int64_t kConvDepth = kBlock;  // of such a part, at most

// A part of the depth for which a panel stays in L1: `runs` runs of `run` floats from `offset` on.
struct ConvTile {
  Tile tile;
  const float* const* rows;
  int64_t offset, runs, run, run_stride;
  const float* residual;
  bool relu;
};

template <class V, class W, int kMr, int kNv>
void run_conv_tile(const ConvTile& t) {
  using T = typename V::T;
  const TileOfC<V, kMr, kNv> c(t.tile);
  T acc[kMr][kNv];
  if (t.residual) {
    Tile from = t.tile;
    from.c = const_cast<float*>(t.residual);  // only read
    from.start = Start::c;
    TileOfC<V, kMr, kNv>(from).begin(acc);
    c.each([&](int i, int v) { acc[i][v] = V::add(acc[i][v], c.load(t.tile.bias, v)); });
  } else {
    c.begin(acc);
  }
  const W* b = static_cast<const W*>(t.tile.b);
  for (int64_t run = 0; run < t.runs; ++run) {
    const float* a[kMr];
#pragma GCC unroll 32
    for (int i = 0; i < kMr; ++i) a[i] = t.rows[i] + t.offset + run * t.run_stride;
    for (int64_t l = 0; l < t.run; ++l) {
      T bv[kNv];
#pragma GCC unroll 32
      for (int v = 0; v < kNv; ++v)
        bv[v] = V::load(b + v / one_panel<V>() * t.tile.b_panel + v % one_panel<V>() * V::lanes);
#pragma GCC unroll 32
      for (int i = 0; i < kMr; ++i) {
        const T av = V::set1(a[i][l]);
#pragma GCC unroll 32
        for (int v = 0; v < kNv; ++v) acc[i][v] = V::fma(av, bv[v], acc[i][v]);
      }
      b += kPanelColumns;
    }
  }
  if (t.relu) c.each([&](int i, int v) { acc[i][v] = V::max(V::set1(0.0f), acc[i][v]); });
  c.end(acc);
}

template <class V, class W, int kVectors, int... kRows>
auto conv_tile_of(int64_t rows, std::integer_sequence<int, kRows...>) {
  static constexpr void (*table[])(const ConvTile&) = {run_conv_tile<V, W, kRows + 1, kVectors>...};
  return table[rows - 1];
}

// All panels of one part of the depth, which begins at row `row` of B.
template <class V, class W>
void conv_part(const ConvProduct& p, ConvTile t, int64_t row, bool first, bool last) {
  constexpr int kMax = V::panel_rows, kVectors = V::panel_vectors(kMax), kOne = one_panel<V>();
  constexpr auto kCounts = std::make_integer_sequence<int, kMax>{};
  constexpr int64_t kAcross = kVectors / kOne;
  const int64_t depth = p.runs * p.run, panels = (p.n + kPanelColumns - 1) / kPanelColumns;
  const RowGroups groups(p.m, kMax);
  t.tile.b_panel = depth * kPanelColumns;
  t.tile.c_ld = p.c_ld;
  t.tile.start = first ? Start::bias : Start::c;
  t.relu = p.relu && last;
  for (int64_t panel = 0; panel < panels;) {
    const int64_t here = panel + kAcross <= panels ? kAcross : 1, j = panel * kPanelColumns;
    t.tile.b = static_cast<const W*>(p.b) + (panel * depth + row) * kPanelColumns;
    t.tile.columns = min(here * kPanelColumns, p.n - j);
    t.tile.bias = p.bias + j;
    for (int64_t g = 0; g < groups.count; ++g) {
      const int64_t i = groups.first(g), rows = groups.rows(g);
      t.rows = p.rows + i;
      t.tile.c = p.c + i * p.c_ld + j;
      t.residual = first && p.residual ? p.residual + i * p.c_ld + j : nullptr;
      (here == kAcross ? conv_tile_of<V, W, kVectors>(rows, kCounts) : conv_tile_of<V, W, kOne>(rows, kCounts))(t);
    }
    panel += here;
  }
}

template <class V, class W>
void conv_over_panels(const ConvProduct& p) {
  ConvTile t{};
  t.run_stride = p.run_stride;
  if (p.run <= kConvDepth) {  // several runs together
    const int64_t together = max(1, kConvDepth / max(1, p.run));
    for (int64_t run = 0; run < p.runs; run += together) {
      t.offset = run * p.run_stride, t.runs = min(together, p.runs - run), t.run = p.run;
      conv_part<V, W>(p, t, run * p.run, run == 0, run + together >= p.runs);
    }
    return;
  }
  const int64_t parts = (p.run + kConvDepth - 1) / kConvDepth;
  t.runs = 1;
  for (int64_t run = 0; run < p.runs; ++run)
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t l = part * p.run / parts;
      t.offset = run * p.run_stride + l, t.run = (part + 1) * p.run / parts - l;
      conv_part<V, W>(p, t, run * p.run + l, run == 0 && part == 0, run + 1 == p.runs && part + 1 == parts);
    }
}

template <class V>
void convolve(const ConvProduct& p) {
  if (p.m == 0 || p.n == 0) return;
  if (p.b_type == WeightType::bf16)
    conv_over_panels<V, uint16_t>(p);
  else
    conv_over_panels<V, float>(p);
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
