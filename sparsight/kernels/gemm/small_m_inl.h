// The small-M GEMMs. With small M each weight is used in a few multiply-adds only: the product is memory-bound, and
// its speed depends on how weights are read. Chosen for up to V::max_small_m rows, or V::max_dots with B transposed.
// Drawing: docs/kernels.md, "Small-M kernel". Over a vector type V. Included by isa/level_inl.h.
#pragma once

#include "sparsight/kernels/gemm/tile_inl.h"
#include "sparsight/kernels/isa/first_cache.h"

namespace sparsight::cpu {
namespace {

// Rows of B that stay in registers while all rows of C are updated.
constexpr int kSmallMStep = 4;

// C [rows,columns] += A [rows,kDepth] B [kDepth,columns], with `columns` a multiple of kAcross vectors. Calls between()
// before each group of kAcross vectors.
template <class V, int kDepth, int kAcross, class Between>
[[gnu::always_inline]] inline void add_to_rows(int64_t rows, const float* a, const float* b, int64_t b_ld, float* c,
                                               int64_t c_ld, int64_t columns, const Between& between) {
  using T = typename V::T;
  constexpr int64_t kWidth = kAcross * V::lanes;
  for (const float* const end = b + columns; b < end; b += kWidth, c += kWidth) {
    between();
    T bv[kDepth][kAcross];
    const float* row_of_b = b;
#pragma GCC unroll 32
    for (int l = 0; l < kDepth; ++l, row_of_b += b_ld) {
      asm("" : "+r"(row_of_b));  // else compilers keep an address for each vector, and run out of registers
#pragma GCC unroll 32
      for (int v = 0; v < kAcross; ++v) bv[l][v] = V::load(row_of_b + v * V::lanes);
    }
    const float* row_of_a = a;
    float* row_of_c = c;
    for (int64_t i = rows; i > 0; --i, row_of_a += kBlockLd, row_of_c += c_ld) {
      T sums[kAcross];
#pragma GCC unroll 32
      for (int v = 0; v < kAcross; ++v) sums[v] = V::load(row_of_c + v * V::lanes);
#pragma GCC unroll 32
      for (int l = 0; l < kDepth; ++l) {
        const T av = V::set1(row_of_a[l]);
#pragma GCC unroll 32
        for (int v = 0; v < kAcross; ++v) sums[v] = V::fma(av, bv[l][v], sums[v]);
      }
#pragma GCC unroll 32
      for (int v = 0; v < kAcross; ++v) V::store(row_of_c + v * V::lanes, sums[v]);
    }
  }
}

// Fills the first `columns` columns of C with the bias or zeros, unless the product accumulates.
inline void start_rows(const Gemm& p, int64_t columns) {
  if (p.accumulate) return;
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < columns; j += kBlock) {
      float* const c = p.c + j / kBlock * p.c_block + i * p.c_ld;
      const auto bytes = static_cast<size_t>(min(kBlock, columns - j)) * sizeof(float);
      p.bias ? std::memcpy(c, p.bias + j, bytes) : std::memset(c, 0, bytes);
    }
}

// Rows in a slice of B with `columns` columns: one slice is multiplied while the next one is prefetched. Both must fit
// into a small L2 cache next to everything else, and each of the eight prefetch streams takes whole rows.
inline int64_t rows_of_slice(int64_t columns) {
  constexpr int64_t kBytes = 48 << 10;
  return max(1, kBytes / (Fetch::kStreams * max(1, columns) * static_cast<int64_t>(sizeof(float)))) * Fetch::kStreams;
}

// Small-M with plain B: reads B once and in memory order, a slice of its rows at a time, while the next slice is
// prefetched. The columns of C are updated in strips, so that a strip of all rows stays in L1. Returns the number of
// columns computed; the tiled GEMM does the rest.
template <class V>
int64_t gemm_small_m(const Gemm& p) {
  constexpr int64_t kWidth = V::small_m_vectors * V::lanes, kSize = sizeof(float);
  constexpr int64_t kStripBytes = 16 << 10;
  static_assert(kBlock % kWidth == 0 && Fetch::kStreams % kSmallMStep == 0 && kBlock % kSmallMStep == 0);
  const float* const weights = static_cast<const float*>(p.b);
  const int64_t whole = p.n / kWidth * kWidth;
  const int64_t strip = max(1, kStripBytes / (p.m * kWidth * kSize)) * kWidth;
  const int64_t slice = rows_of_slice(p.n);
  const auto upcoming = [&](const void* from, int64_t rows, int64_t columns, int64_t ld) {
    return Fetch(from, min(rows_of_slice(columns), rows), columns * kSize, ld * kSize, V::small_m_piece, p.streams);
  };
  if (whole == 0) return 0;
  start_rows(p, whole);
  for (int64_t l = 0; l < p.k; l += slice) {
    const int64_t depth = min(slice, p.k - l), left = p.k - l - depth;
    Fetch fetch = left > 0 ? upcoming(weights + (l + slice) * p.b_ld, left, p.n, p.b_ld)
                           : upcoming(p.prefetch, p.prefetch_rows, p.prefetch_columns, p.prefetch_ld);
    const int64_t steps = (depth + kSmallMStep - 1) / kSmallMStep * (whole / kWidth);
    const int64_t fetches = (fetch.left + steps - 1) / steps;  // per step
    const auto fetch_some = [&] {
      // A slice while another is in use is too much for a small first cache.
      for (int64_t f = 0; f < fetches; ++f)
        kFirstCacheIsLarge ? fetch.next<Fetch::kAllCaches>() : fetch.next<Fetch::kNotFirst>();
    };
    for (int64_t first = 0, columns; first < whole; first += columns) {
      columns = min(min(strip, whole - first), kBlock - first % kBlock);
      float* const c = p.c + first / kBlock * p.c_block + first % kBlock;
      for (int64_t d = l; d < l + depth; d += kSmallMStep) {
        const float* const a = p.a + d / kBlock * p.a_block + d % kBlock;
        const float* const b = weights + d * p.b_ld + first;
        const int64_t deep = min(kSmallMStep, l + depth - d);
        if (deep == kSmallMStep)
          add_to_rows<V, kSmallMStep, V::small_m_vectors>(p.m, a, b, p.b_ld, c, p.c_ld, columns, fetch_some);
        else
          for (int64_t one = 0; one < deep; ++one)
            add_to_rows<V, 1, V::small_m_vectors>(p.m, a + one, b + one * p.b_ld, p.b_ld, c, p.c_ld, columns, [] {});
      }
    }
  }
  finish_blocks<V>(p, whole);
  return whole;
}

// The dot-product micro-kernel: kRows x kAcross elements of C, each a vector of sums along a row of A and a row of B
// that is reduced at the end.
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

// The micro-kernel for `rows` rows (`maximum` or one less), as wide as that of `maximum` rows.
template <class V, int... kRows>
TileFunction select_dot_tile(int64_t rows, int64_t maximum, std::integer_sequence<int, kRows...>) {
  static constexpr TileFunction whole[] = {dot_tile<V, kRows + 1, V::dots_across(kRows + 1)>...};
  static constexpr TileFunction less[] = {dot_tile<V, kRows + (kRows == 0), V::dots_across(kRows + 1)>...};
  return (rows == maximum ? whole : less)[maximum - 1];
}
// The same for a single column.
template <class V, int... kRows>
TileFunction select_dot_column(int64_t rows, std::integer_sequence<int, kRows...>) {
  static constexpr TileFunction column[] = {dot_tile<V, kRows + 1, 1>...};
  return column[rows - 1];
}

// Small-M with B transposed, for the gradients of rows and of the hidden layer: the rows of B are contiguous along the
// depth, so dot products read them once and in place, without packing, while the next ones are prefetched.
template <class V>
void gemm_small_m_transposed(const Gemm& p) {
  const float* const weights = static_cast<const float*>(p.b);
  constexpr int64_t kSlice = V::lanes < 16 ? 24 : 32;  // rows of B that are multiplied at a time
  static_assert(kSlice % V::dots_across(1) == 0 && kSlice % V::dots_across(2) == 0 && kSlice % V::dots_across(3) == 0 &&
                kSlice % V::dots_across(4) == 0);
  const RowGroups groups(p.m, 4);
  constexpr auto kCounts = std::make_integer_sequence<int, 4>{};
  const int64_t width = V::dots_across(groups.max_rows);
  const int64_t vectors = (p.k + V::lanes - 1) / V::lanes;
  constexpr int64_t kSize = sizeof(float);
  const int64_t piece = max(Fetch::kLongPiece, width * V::lanes * kSize);
  Tile t{};
  t.b_ld = p.b_ld;
  t.c_ld = p.c_ld;
  for (int64_t first = 0; first < p.n; first += kSlice) {
    const int64_t slice = min(kSlice, p.n - first), left = p.n - first - slice;
    const auto upcoming = [&](const void* from, int64_t rows, int64_t columns, int64_t ld) {
      return Fetch(from, min(kSlice, rows), columns * kSize, ld * kSize, piece, p.streams);
    };
    Fetch fetch = left > 0 ? upcoming(weights + (first + slice) * p.b_ld, left, p.k, p.b_ld)
                           : upcoming(p.prefetch, p.prefetch_rows, p.prefetch_columns, p.prefetch_ld);
    t.fetch = &fetch;
    t.every = fetch.every(groups.count * (slice / width) * vectors);
    for (int64_t l = 0; l < p.k || l == 0; l += kBlock) {
      t.depth = min(kBlock, p.k - l);
      t.start = l > 0 || p.accumulate ? Start::c : p.bias ? Start::bias : Start::zero;
      for (int64_t j = first; j < first + slice;) {
        const bool one = j + width > first + slice;
        t.b = weights + j * p.b_ld + l;
        t.bias = p.bias ? p.bias + j : nullptr;
        for (int64_t g = 0; g < groups.count; ++g) {
          const int64_t i = groups.first(g), rows = groups.rows(g);
          t.a = p.a + l / kBlock * p.a_block + i * kBlockLd;
          t.c = p.c + j / kBlock * p.c_block + i * p.c_ld + j % kBlock;
          (one ? select_dot_column<V>(rows, kCounts) : select_dot_tile<V>(rows, groups.max_rows, kCounts))(t);
        }
        j += one ? 1 : width;
      }
    }
  }
  finish_blocks<V>(p, p.n);
}

}  // namespace
}  // namespace sparsight::cpu
