// Products with few rows: each weight is used for few multiply-adds, so that what counts is how weights are read. Over
// a vector type V. Included by kernels_inl.h.
#pragma once

#include "sparsight/ops/cpu/kernels_tile_inl.h"

namespace sparsight::cpu {
namespace {

// Few rows of A: B is read once and where it lies, a slice of its rows at a time (V::slice, a part of kBlock), while
// the next slice is fetched and C waits in the cache. Tiles have V::wide vectors. Where several lie above each other,
// the first one leaves its part of B in the panel: rows of B may lie so far apart that they push each other out of the
// first-level cache. Returns how many columns that is; the rest is left.
template <class V>
int64_t multiply_few(const Product& p, float* panel) {
  constexpr int64_t kSlice = V::slice;
  static_assert(panel_floats<V>() >= kSlice * V::wide(V::few / 2 + 1) * V::lanes);  // room for a slice of a tile
  constexpr auto kCounts = std::make_integer_sequence<int, V::few>{};
  constexpr int64_t kSize = sizeof(float);
  const float* const weights = static_cast<const float*>(p.b);
  const RowGroups groups(p.m, V::few);
  const int64_t width = V::wide(static_cast<int>(groups.most)) * V::lanes, whole = p.n / width * width;
  // One group of rows waits for memory, not for instructions, and short pieces come faster.
  const int64_t piece = groups.count > 1 ? greatest(Fetch::kLongPiece, width * kSize) : width * kSize;
  for (int64_t l = 0; l < p.k || l == 0; l += kSlice) {
    const int64_t depth = least(kSlice, p.k - l), left = p.k - l - depth;
    const auto soon = [&](const void* from, int64_t rows, int64_t columns, int64_t ld) {
      return Fetch(from, least(kSlice, rows), columns * kSize, ld * kSize, piece);
    };
    Fetch fetch = left > 0 ? soon(weights + (l + kSlice) * p.b_ld, left, p.n, p.b_ld)
                           : soon(p.next, p.next_rows, p.next_columns, p.next_ld);
    Tile t{};
    t.depth = depth;
    t.c_ld = p.c_ld;
    t.columns = width;
    t.start = l > 0 || p.accumulate ? Start::c : p.bias ? Start::bias : Start::zero;
    t.stream = p.stream && left == 0;
    t.fetch = &fetch;
    t.every = fetch.every(groups.count * depth * (whole / width));
    for (int64_t j = 0; j < whole; j += width) {
      t.bias = p.bias ? p.bias + j : nullptr;
      for (int64_t g = 0; g < groups.count; ++g) {
        t.b = g == 0 ? weights + l * p.b_ld + j : panel;
        t.b_ld = g == 0 ? p.b_ld : width;
        t.copy = panel;
        const int64_t i = groups.first(g), rows = groups.rows(g);
        t.a = p.a + l / kBlock * p.a_block + i * kBlockLd + l % kBlock;
        t.c = p.c + j / kBlock * p.c_block + i * p.c_ld + j % kBlock;
        (g == 0 && groups.count > 1 ? wide_tile<V, Source::rows_copied>(rows, groups.most, kCounts)
                                    : wide_tile<V, Source::rows>(rows, groups.most, kCounts))(t);
      }
    }
  }
  finish_blocks<V>(p, whole);
  return whole;
}

// kRows x kAcross elements of C, each of them a vector of sums along a row of A and a row of B, which are summed at
// last.
template <class V, int kRows, int kAcross>
void dot_tile(const Tile& t) {
  using T = typename V::T;
  constexpr int kVectors = (kRows * kAcross + V::lanes - 1) / V::lanes;
  T acc[kVectors][V::lanes];
#pragma GCC unroll 32
  for (int v = 0; v < kVectors; ++v)
#pragma GCC unroll 32
    for (T& one : acc[v]) one = V::set1(0.0f);
  const float *a = t.a, *b = static_cast<const float*>(t.b);
  const auto step = [&](const auto& load) __attribute__((always_inline)) {
    T bv[kAcross];
#pragma GCC unroll 32
    for (int j = 0; j < kAcross; ++j) bv[j] = load(b + j * t.b_ld);
#pragma GCC unroll 32
    for (int i = 0; i < kRows; ++i) {
      const T av = load(a + i * kBlockLd);
#pragma GCC unroll 32
      for (int j = 0; j < kAcross; ++j) {
        T& sum = acc[(i * kAcross + j) / V::lanes][(i * kAcross + j) % V::lanes];
        sum = V::fma(av, bv[j], sum);
      }
    }
  };
  fetching_steps(
      t, t.depth / V::lanes, [&]() __attribute__((always_inline)) {
        step([&](const float* p) { return V::load(p); });
        a += V::lanes;
        b += V::lanes;
      });
  if (const auto left = static_cast<int>(t.depth % V::lanes); left > 0)
    step([&](const float* p) { return V::load_part(p, left); });

  float sums[kVectors * V::lanes];
#pragma GCC unroll 32
  for (int v = 0; v < kVectors; ++v) V::store(sums + v * V::lanes, V::sums(acc[v]));
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kAcross; ++j) {
      float& c = t.c[i * t.c_ld + j];
      c = (t.start == Start::c ? c : t.start == Start::bias ? t.bias[j] : 0.0f) + sums[i * kAcross + j];
    }
}

// As wide as tiles of `most` rows are; `rows` is that or one less.
template <class V, int... kRows>
TileFunction dot_tile_of(int64_t rows, int64_t most, std::integer_sequence<int, kRows...>) {
  static constexpr TileFunction whole[] = {dot_tile<V, kRows + 1, V::dots_across(kRows + 1)>...};
  static constexpr TileFunction less[] = {dot_tile<V, kRows + (kRows == 0), V::dots_across(kRows + 1)>...};
  return (rows == most ? whole : less)[most - 1];
}
// One column.
template <class V, int... kRows>
TileFunction dot_column_of(int64_t rows, std::integer_sequence<int, kRows...>) {
  static constexpr TileFunction column[] = {dot_tile<V, kRows + 1, 1>...};
  return column[rows - 1];
}

// Few rows of A, B transposed: rows of B are read once and where they lie, while the next ones are fetched.
template <class V>
void multiply_few_transposed(const Product& p) {
  const float* const weights = static_cast<const float*>(p.b);
  constexpr int64_t kSlice = V::lanes < 16 ? 24 : 32;  // rows of B that are read at a time
  static_assert(kSlice % V::dots_across(1) == 0 && kSlice % V::dots_across(2) == 0 && kSlice % V::dots_across(3) == 0 &&
                kSlice % V::dots_across(4) == 0);
  const RowGroups groups(p.m, 4);
  constexpr auto kCounts = std::make_integer_sequence<int, 4>{};
  const int64_t width = V::dots_across(groups.most);
  const int64_t vectors = (p.k + V::lanes - 1) / V::lanes;
  constexpr int64_t kSize = sizeof(float);
  const int64_t piece = greatest(Fetch::kLongPiece, width * V::lanes * kSize);
  Tile t{};
  t.b_ld = p.b_ld;
  t.c_ld = p.c_ld;
  for (int64_t first = 0; first < p.n; first += kSlice) {
    const int64_t slice = least(kSlice, p.n - first), left = p.n - first - slice;
    const auto soon = [&](const void* from, int64_t rows, int64_t columns, int64_t ld) {
      return Fetch(from, least(kSlice, rows), columns * kSize, ld * kSize, piece);
    };
    Fetch fetch = left > 0 ? soon(weights + (first + slice) * p.b_ld, left, p.k, p.b_ld)
                           : soon(p.next, p.next_rows, p.next_columns, p.next_ld);
    t.fetch = &fetch;
    t.every = fetch.every(groups.count * (slice / width) * vectors);
    for (int64_t l = 0; l < p.k || l == 0; l += kBlock) {
      t.depth = least(kBlock, p.k - l);
      t.start = l > 0 || p.accumulate ? Start::c : p.bias ? Start::bias : Start::zero;
      for (int64_t j = first; j < first + slice;) {
        const bool one = j + width > first + slice;
        t.b = weights + j * p.b_ld + l;
        t.bias = p.bias ? p.bias + j : nullptr;
        for (int64_t g = 0; g < groups.count; ++g) {
          const int64_t i = groups.first(g), rows = groups.rows(g);
          t.a = p.a + l / kBlock * p.a_block + i * kBlockLd;
          t.c = p.c + j / kBlock * p.c_block + i * p.c_ld + j % kBlock;
          (one ? dot_column_of<V>(rows, kCounts) : dot_tile_of<V>(rows, groups.most, kCounts))(t);
        }
        j += one ? 1 : width;
      }
    }
  }
  finish_blocks<V>(p, p.n);
}

}  // namespace
}  // namespace sparsight::cpu
