// Tiles: the part of a product whose sums stay in registers, over a vector type V. Included by kernels_inl.h and
// kernels_few_rows_inl.h.
#pragma once

#include <cstdint>
#include <cstring>

#include "sparsight/ops/cpu/kernels_elementwise_inl.h"
#include "sparsight/ops/cpu/kernels_fetch_inl.h"

namespace sparsight::cpu {
namespace {

// What the registers hold where rows are many.
struct TileShape {
  int rows, vectors;
};

// A panel has a block of the depth, as wide as such a tile.
template <class V>
constexpr int64_t panel_floats() {
  const int one = V::tile(false).vectors, other = V::tile(true).vectors;
  return kBlock * V::lanes * (one > other ? one : other);
}

// The rows of a product, cut into as few groups as tiles of up to `most_rows` rows allow, as equal as may be: the
// longer ones first, of `most` rows, the others of one less.
struct RowGroups {
  int64_t count, most, longer;
  RowGroups(int64_t rows, int64_t most_rows)
      : count((rows + most_rows - 1) / most_rows),
        most((rows + count - 1) / count),
        longer(rows - count * (most - 1)) {}
  int64_t first(int64_t group) const { return group * (most - 1) + least(group, longer); }
  int64_t rows(int64_t group) const { return group < longer ? most : most - 1; }
};

enum class Start { zero, bias, c };

// Where a tile finds B.
enum class Source {
  rows,
  rows_copied,  // and leaves it behind: Tile::copy
  panels,       // of kPanelColumns columns
};

struct Tile {
  const float* a;
  int64_t a_ld;  // of a transposed A
  const void* b;
  int64_t b_ld;     // of rows
  int64_t b_panel;  // elements from one panel to the next
  int64_t depth;
  float* c;
  int64_t c_ld;
  int64_t columns;  // fewer than the tile has: B is padded with zeros, C is not
  Start start;
  const float* bias;
  const float* scale;  // of the columns of B; may be null
  float* copy;         // receives B as it is read: [depth][columns of the tile]
  bool stream;
  Fetch* fetch;  // a piece, as long as a row of the tile, for each `every` steps of the depth
  int64_t every;
};

// A row of such a tile of B in bytes, but at least a line of the cache.
template <class V, class W>
constexpr int64_t piece_bytes(int vectors) {
  const int64_t bytes = vectors * V::lanes * static_cast<int64_t>(sizeof(W));
  return bytes > 64 ? bytes : 64;
}

// kMr x (kNv vectors) elements of C in registers.
template <class V, class W, int kMr, int kNv, bool kTransposed, Source kSource>
void run_tile(const Tile& t) {
  using T = typename V::T;
  constexpr bool kCopy = kSource == Source::rows_copied, kPanels = kSource == Source::panels;
  constexpr int kPanelVectors = static_cast<int>(kPanelColumns) / V::lanes;
  static_assert(!kPanels || kNv % kPanelVectors == 0);
  constexpr int64_t kPiece = piece_bytes<V, W>(kNv);
  T acc[kMr][kNv];
  const bool full = t.columns >= kNv * V::lanes;
  const auto part = [&](int v) { return static_cast<int>(t.columns - v * V::lanes); };  // columns of vector v, or more
  const auto load = [&](const float* p, int v) {
    return part(v) >= V::lanes ? V::load(p + v * V::lanes)
           : part(v) > 0       ? V::load_part(p + v * V::lanes, part(v))
                               : V::set1(0.0f);
  };
  const auto c = [&](int i, int v) { return t.c + i * t.c_ld + v * V::lanes; };
  const auto each = [&](const auto& body) __attribute__((always_inline)) {
#pragma GCC unroll 32
    for (int i = 0; i < kMr; ++i)
#pragma GCC unroll 32
      for (int v = 0; v < kNv; ++v) body(i, v);
  };
  const auto begin = [&](Start start) __attribute__((always_inline)) {
    if (start == Start::zero)
      each([&](int i, int v) { acc[i][v] = V::set1(0.0f); });
    else if (start == Start::bias)
      each([&](int i, int v) { acc[i][v] = load(t.bias, v); });
    else if (full)
      each([&](int i, int v) { acc[i][v] = V::load(c(i, v)); });
    else
      each([&](int i, int v) { acc[i][v] = load(t.c + i * t.c_ld, v); });
  };
  begin(t.scale ? Start::zero : t.start);

  const float* a = t.a;
  const W* b = static_cast<const W*>(t.b);
  float* copy = t.copy;
  const int64_t a_step = kTransposed ? t.a_ld : 1, b_step = kPanels ? kPanelColumns : t.b_ld;
  const auto step = [&]() __attribute__((always_inline)) {
    T bv[kNv];
#pragma GCC unroll 32
    for (int v = 0; v < kNv; ++v) {
      bv[v] = V::load(b + (kPanels ? v / kPanelVectors * t.b_panel + v % kPanelVectors * V::lanes : v * V::lanes));
      if constexpr (kCopy) V::store(copy + v * V::lanes, bv[v]);
    }
#pragma GCC unroll 32
    for (int i = 0; i < kMr; ++i) {
      const T av = V::set1(a[kTransposed ? i : i * kBlockLd]);
#pragma GCC unroll 32
      for (int v = 0; v < kNv; ++v) acc[i][v] = V::fma(av, bv[v], acc[i][v]);
    }
    a += a_step;
    b += b_step;
    if constexpr (kCopy) copy += kNv * V::lanes;
  };
  Fetch fetch = *t.fetch;
  for (int64_t l = 0; l < t.depth;) {
    fetch.next<kPiece>();
    const int64_t end = least(t.depth, l + t.every);
    for (; l < end; ++l) step();
  }
  *t.fetch = fetch;

  if (t.scale) {
    T unscaled[kMr][kNv];
    std::memcpy(&unscaled, &acc, sizeof acc);
    begin(t.start);
    each([&](int i, int v) { acc[i][v] = V::fma(unscaled[i][v], load(t.scale, v), acc[i][v]); });
  }
  if (full && t.stream)
    each([&](int i, int v) { V::stream(c(i, v), acc[i][v]); });
  else if (full)
    each([&](int i, int v) { V::store(c(i, v), acc[i][v]); });
  else
    each([&](int i, int v) {
      if (part(v) >= V::lanes)
        V::store(c(i, v), acc[i][v]);
      else if (part(v) > 0)
        V::store_part(c(i, v), acc[i][v], part(v));
    });
}

using TileFunction = void (*)(const Tile&);

// Columns j .. j + columns of C are done: what follows.
template <class V>
void finish(const Product& p, int64_t j, int64_t columns) {
  if (p.activation < 0) return;
  for (int64_t i = 0; i < p.m; ++i) {
    float* c = p.c + j / kBlock * p.c_block + i * p.c_ld + j % kBlock;
    if (p.before) std::memcpy(p.before + i * p.before_ld + j, c, static_cast<size_t>(columns) * sizeof(float));
    activate_any<V>(p.activation, c, c, nullptr, columns);
  }
}

// The tile functions by number of rows: narrow ones (V::tile), and for few rows wide ones.
template <class V, bool kTransposed, Source kSource, int... kRows>
TileFunction narrow_tile(int64_t rows, std::integer_sequence<int, kRows...>) {
  static constexpr TileFunction table[] = {
      run_tile<V, float, kRows + 1, V::tile(kTransposed).vectors, kTransposed, kSource>...};
  return table[rows - 1];
}
// As wide as tiles of `most` rows are; `rows` is that or one less.
template <class V, Source kSource, int... kRows>
TileFunction wide_tile(int64_t rows, int64_t most, std::integer_sequence<int, kRows...>) {
  static constexpr TileFunction whole[] = {run_tile<V, float, kRows + 1, V::wide(kRows + 1), false, kSource>...};
  static constexpr TileFunction less[] = {
      run_tile<V, float, kRows + (kRows == 0), V::wide(kRows + 1), false, kSource>...};
  return (rows == most ? whole : less)[most - 1];
}

}  // namespace
}  // namespace sparsight::cpu
