// The body of every level's kernels, over a vector type V of that level (Vec in the level's source file, in an unnamed
// namespace: so that no instantiation is shared between levels). Included by kernels_<level>.cpp only.
#pragma once

#include <cstring>

#include "sparsight/ops/cpu/kernels_elementwise_inl.h"

namespace sparsight::cpu {
namespace {

// ---- products -------------------------------------------------------------------------------------------------------

enum class Start { zero, bias, c };

struct Tile {
  const float* a;
  int64_t a_ld;  // of a transposed A
  const void* b;
  int64_t b_ld;
  int64_t depth;
  float* c;
  int64_t c_ld;
  int64_t columns;  // fewer than the tile has: B is padded with zeros, C is not
  Start start;
  const float* bias;
  const float* scale;  // of the columns of B; may be null
  float* copy;         // receives B as it is read: [depth][columns of the tile]
  bool stream;
  int64_t ahead;  // fetch the elements of B so far ahead of those at work; 0: fetch what `fetch` says instead
  struct Fetch* fetch;
};

// Fetches what is read next into the second-level cache, row by row, spread over the steps of what is computed before.
// A piece is as long as a row of a narrow tile.
struct Fetch {
  const char *at, *row_end;
  int64_t row_bytes, stride;
  int64_t every;  // steps for each piece

  Fetch(const void* matrix, int64_t rows, int64_t bytes, int64_t row_stride, int64_t piece, int64_t steps)
      : at(static_cast<const char*>(matrix)), row_end(at + bytes), row_bytes(bytes), stride(row_stride) {
    const int64_t pieces = rows * ((bytes + piece - 1) / piece);
    every = pieces == 0 ? steps + 1 : steps > pieces ? steps / pieces : 1;
  }
};

// kMr x (kNv vectors) elements of C in registers.
template <class V, class W, int kMr, int kNv, bool kTransposed, bool kCopy>
void run_tile(const Tile& t) {
  using T = typename V::T;
  constexpr int kLines = (kNv * V::lanes * static_cast<int>(sizeof(W)) + 63) / 64;
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
  const int64_t a_step = kTransposed ? t.a_ld : 1, b_step = t.b_ld;
  const auto step = [&]() __attribute__((always_inline)) {
    T bv[kNv];
#pragma GCC unroll 32
    for (int v = 0; v < kNv; ++v) {
      bv[v] = V::load(b + v * V::lanes);
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
  int64_t l = 0;
  if (t.ahead > 0) {
    for (; l < t.depth; ++l) {
      const char* soon = reinterpret_cast<const char*>(b + t.ahead);
#pragma GCC unroll 32
      for (int line = 0; line < kLines; ++line) V::prefetch(soon + 64 * line);
      step();
    }
  } else {
    const char *at = t.fetch->at, *row_end = t.fetch->row_end;
    while (l < t.depth) {
#pragma GCC unroll 32
      for (int64_t byte = 0; byte < V::piece; byte += 64) V::prefetch_far(at + byte);
      at += V::piece;
      if (at >= row_end) {
        row_end += t.fetch->stride;
        at = row_end - t.fetch->row_bytes;
      }
      const int64_t end = least(t.depth, l + t.fetch->every);
      for (; l < end; ++l) step();
    }
    t.fetch->at = at;
    t.fetch->row_end = row_end;
  }

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

// The tile functions by number of rows: narrow ones (V::narrow vectors), and for few rows wide ones.
template <class V, class W, bool kTransposed, bool kCopy, int... kRows>
TileFunction narrow_tile(int64_t rows, std::integer_sequence<int, kRows...>) {
  static constexpr TileFunction table[] = {run_tile<V, W, kRows + 1, V::narrow, kTransposed, kCopy>...};
  return table[rows - 1];
}
// As wide as tiles of `most` rows are; `rows` is that or one less.
template <class V, class W, int... kRows>
TileFunction wide_tile(int64_t rows, int64_t most, std::integer_sequence<int, kRows...>) {
  static constexpr TileFunction whole[] = {run_tile<V, W, kRows + 1, V::wide(kRows + 1), false, false>...};
  static constexpr TileFunction less[] = {run_tile<V, W, kRows + (kRows == 0), V::wide(kRows + 1), false, false>...};
  return (rows == most ? whole : less)[most - 1];
}

// panel[l][j] = b(l, j) for depth x columns, with zeros up to `width` columns.
template <class V, class W>
void pack(const W* b, int64_t b_ld, int64_t depth, int64_t columns, int64_t width, float* panel) {
  for (int64_t l = 0; l < depth; ++l) {
    if constexpr (std::is_same_v<W, float>)
      std::memcpy(panel + l * width, b + l * b_ld, static_cast<size_t>(columns) * sizeof(float));
    else
      for (int64_t j = 0; j < columns; ++j) panel[l * width + j] = V::value(b[l * b_ld + j]);
    for (int64_t j = columns; j < width; ++j) panel[l * width + j] = 0;
  }
}
// The same of b(l, j) = b[j * b_ld + l].
template <class V>
void pack_transposed(const float* b, int64_t b_ld, int64_t depth, int64_t columns, int64_t width, float* panel) {
  constexpr int kLanes = V::lanes;
  for (int64_t j = 0; j < width; j += kLanes) {
    const int64_t some = least(kLanes, columns - j);
    int64_t l = 0;
    if (some == kLanes)
      for (; l + kLanes <= depth; l += kLanes) V::transpose(b + j * b_ld + l, b_ld, panel + l * width + j, width);
    for (; l < depth; ++l)
      for (int64_t i = 0; i < kLanes; ++i) panel[l * width + j + i] = i < some ? b[(j + i) * b_ld + l] : 0;
  }
}

constexpr int64_t kSlice = 8;  // rows of B that are read at a time for few rows of A

template <class V, class W, bool kTransposed>
void multiply(const Product& p, float* panel) {
  constexpr int kNr = V::narrow * V::lanes;
  constexpr auto kRowCounts = std::make_integer_sequence<int, V::rows>{};
  constexpr auto kFewCounts = std::make_integer_sequence<int, V::few>{};
  constexpr int64_t kSize = sizeof(W);
  const W* const weights = static_cast<const W*>(p.b);
  const int64_t groups = (p.m + V::rows - 1) / V::rows;
  // While one panel of B is at work the next one is fetched; the last panel fetches the first of the next product.
  for (int64_t k0 = 0; k0 < p.k || k0 == 0; k0 += kBlock) {
    const int64_t depth = least(kBlock, p.k - k0);
    const bool last = k0 + kBlock >= p.k;
    const float* a = kTransposed ? p.a + k0 * p.a_ld : p.a + k0 / kBlock * p.a_block;
    const W* b = p.b_transposed ? weights + k0 : weights + k0 * p.b_ld;
    const auto b_at = [&](int64_t j) { return p.b_transposed ? b + j * p.b_ld : b + j; };
    Tile t{};
    t.a_ld = p.a_ld;
    t.depth = depth;
    t.c_ld = p.c_ld;
    t.start = k0 > 0 || p.accumulate ? Start::c : p.bias ? Start::bias : Start::zero;
    t.stream = p.stream && last;
    const auto finish = [&](int64_t j, int64_t columns) {
      if (!last || p.activation < 0) return;
      for (int64_t i = 0; i < p.m; ++i) {
        float* c = p.c + j / kBlock * p.c_block + i * p.c_ld + j % kBlock;
        if (p.before) std::memcpy(p.before + i * p.before_ld + j, c, static_cast<size_t>(columns) * sizeof(float));
        activate_any<V>(p.activation, c, c, nullptr, columns);
      }
    };
    int64_t j = 0;
    if constexpr (!kTransposed) {
      const bool few = p.m <= V::few, twice_few = p.m <= 2 * V::few;
      if (twice_few && !p.b_transposed && (few || p.b_scale)) {
        // Few rows: B is read where it lies, in pieces as long as the registers allow, and once by each of two halves.
        const int64_t halves = (p.m + V::few - 1) / V::few, most = (p.m + halves - 1) / halves;
        const int64_t width = V::wide(static_cast<int>(most)) * V::lanes;
        t.b_ld = p.b_ld;
        t.columns = width;
        for (; j + width <= p.n; j += width) {
          t.b = b_at(j);
          t.bias = p.bias ? p.bias + j : nullptr;
          t.scale = p.b_scale ? p.b_scale + j : nullptr;
          for (int64_t half = 0; half < halves; ++half) {
            const int64_t i = p.m * half / halves, rows = p.m * (half + 1) / halves - i;
            t.a = a + i * kBlockLd;
            t.c = p.c + j / kBlock * p.c_block + i * p.c_ld + j % kBlock;
            t.ahead = half == 0 ? (V::ahead_bytes / (width * kSize) + 1) * p.b_ld : width;
            wide_tile<V, W>(rows, most, kFewCounts)(t);
          }
          finish(j, width);
        }
      } else if (twice_few && !p.b_transposed) {
        // A few more: B is read where it lies, some rows at a time, while C waits in the first-level cache.
        const int64_t whole = p.n / kNr * kNr;
        const Start start = t.start;
        t.b_ld = p.b_ld;
        t.columns = kNr;
        for (int64_t l = 0; l < depth; l += kSlice) {
          t.depth = least(kSlice, depth - l);
          t.start = l > 0 ? Start::c : start;
          for (j = 0; j < whole; j += kNr) {
            t.b = b_at(j) + l * p.b_ld;
            t.bias = p.bias ? p.bias + j : nullptr;
            for (int64_t g = 0; g < groups; ++g) {
              const int64_t i = p.m * g / groups, rows = p.m * (g + 1) / groups - i;
              t.a = a + i * kBlockLd + l;
              t.c = p.c + j / kBlock * p.c_block + i * p.c_ld + j % kBlock;
              t.ahead = g == 0 ? kSlice * p.b_ld : p.b_ld;
              narrow_tile<V, W, false, false>(rows, kRowCounts)(t);
            }
          }
        }
        for (int64_t done = 0; done < whole; done += kNr) finish(done, kNr);
        t.start = start;
        t.depth = depth;
      }
    }
    for (; j < p.n; j += kNr) {
      const int64_t columns = least(kNr, p.n - j);
      const bool direct = !p.b_transposed && columns == kNr;
      if (p.b_transposed) {
        if constexpr (std::is_same_v<W, float>) pack_transposed<V>(b_at(j), p.b_ld, depth, columns, kNr, panel);
      } else if (!direct) {
        pack<V, W>(b_at(j), p.b_ld, depth, columns, kNr, panel);
      }
      t.columns = columns;
      t.bias = p.bias ? p.bias + j : nullptr;
      t.scale = p.b_scale ? p.b_scale + j : nullptr;
      t.ahead = 0;
      const auto soon = [&](const void* from, int64_t rows, int64_t length, int64_t ld) {
        return Fetch(from, rows, length * kSize, ld * kSize, V::piece, groups * depth);
      };
      Fetch fetch = soon(panel, 0, 1, 0);  // nothing
      if (j + kNr < p.n)
        fetch = p.b_transposed ? soon(b_at(j + kNr), least(kNr, p.n - j - kNr), depth, p.b_ld)
                               : soon(b_at(j + kNr), depth, kNr, p.b_ld);
      else if (!last && !p.b_transposed)
        fetch = soon(b + kBlock * p.b_ld, least(kBlock, p.k - k0 - kBlock), kNr, p.b_ld);
      else if (last && p.next)
        fetch = soon(p.next, least(kBlock, p.next_rows), kNr, p.next_ld);
      t.fetch = &fetch;
      for (int64_t g = 0; g < groups; ++g) {
        const int64_t i = p.m * g / groups, rows = p.m * (g + 1) / groups - i;
        t.a = kTransposed ? a + i : a + i * kBlockLd;
        t.c = p.c + j / kBlock * p.c_block + i * p.c_ld + j % kBlock;
        if (direct && g == 0) {
          t.b = b_at(j);
          t.b_ld = p.b_ld;
          t.copy = panel;
          if (groups == 1)
            narrow_tile<V, W, kTransposed, false>(rows, kRowCounts)(t);
          else
            narrow_tile<V, W, kTransposed, true>(rows, kRowCounts)(t);
        } else {
          t.b = panel;
          t.b_ld = kNr;
          narrow_tile<V, float, kTransposed, false>(rows, kRowCounts)(t);
        }
      }
      finish(j, columns);
    }
  }
}

template <class V>
void product_any(const Product& p, float* panel) {
  if (p.m == 0 || p.n == 0) return;
  if (p.b_type == WeightType::bf16)
    multiply<V, uint16_t, false>(p, panel);
  else if (p.b_type == WeightType::int8)
    multiply<V, int8_t, false>(p, panel);
  else if (p.a_transposed)
    multiply<V, float, true>(p, panel);
  else
    multiply<V, float, false>(p, panel);
  if (p.stream) V::fence();
}

template <class V>
constexpr Kernels make_kernels() {
  return {product_any<V>,
          kBlock * V::narrow * V::lanes,
          144,
          activate_any<V>,
          activate_backward_any<V>,
          scaled_sum<V>,
          dot<V>,
          add_scaled<V>};
}

}  // namespace
}  // namespace sparsight::cpu
