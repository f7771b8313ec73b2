// Register tiles: micro-kernels that keep a block of C in registers over a block of the depth (register blocking).
// Over a vector type V. Included by isa/level_inl.h and gemm/small_m_inl.h.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

#include "sparsight/kernels/elementwise/elementwise_inl.h"
#include "sparsight/kernels/gemm/fetch_inl.h"

namespace sparsight::cpu {
namespace {

// Rows of C, and vectors per row, in the registers of the tiled GEMM.
struct TileShape {
  int rows, vectors;
};

// Scratch of a product: a panel, as deep as a block and as wide as the widest tile, and rows of A that were columns
// (gemm/gemm_tn_inl.h); or rows in 16 bits (gemm/panels_inl.h).
constexpr int64_t kRoundedRows = 144, kTransposedRows = 96;
// Memory of rows in bf16 or int8, of which `read` are read: first what the sums of kRoundedRows quantised rows start
// from, and their scales.
constexpr int64_t rounded_floats(int64_t read) { return 2 * kRoundedRows + read * kBlock / 2; }
template <class V>
constexpr int64_t widest_panel_floats() {
  return kBlock * V::lanes * max(V::tile(false).vectors, V::tile(true).vectors);
}
template <class V>
constexpr int64_t panel_floats() {
  return max(widest_panel_floats<V>() + kTransposedRows * kBlockLd, rounded_floats(kRoundedRows));
}

// Splits the rows of a product into as few groups as tiles of up to `limit` rows allow, of nearly equal size: first
// `longer` groups of `max_rows` rows, then groups of one row less.
struct RowGroups {
  int64_t count, max_rows, longer;
  RowGroups(int64_t rows, int64_t limit)
      : count((rows + limit - 1) / limit),
        max_rows((rows + count - 1) / count),
        longer(rows - count * (max_rows - 1)) {}
  int64_t first(int64_t group) const { return group * (max_rows - 1) + min(group, longer); }
  int64_t rows(int64_t group) const { return group < longer ? max_rows : max_rows - 1; }
};

// The same in whole units of rows; only the last may be smaller.
class UnitGroups {
 public:
  UnitGroups(int64_t rows, int64_t limit, int64_t unit)
      : rows_(rows), unit_(unit), units_((rows + unit - 1) / unit, limit / unit) {}
  int64_t first(int64_t group) const { return units_.first(group) * unit_; }
  int64_t rows(int64_t group) const { return min(units_.rows(group) * unit_, rows_ - first(group)); }
  int64_t count() const { return units_.count; }

 private:
  int64_t rows_, unit_;
  RowGroups units_;
};

enum class Start { zero, bias, c };

// How a tile reads B.
enum class Source {
  rows,
  rows_copied,  // rows, which are also packed into a panel: Tile::copy
  panels,       // of kPanelColumns columns
};

struct Tile {
  const float* a;
  int64_t a_ld;  // of a transposed A
  const void* b;
  int64_t b_ld;     // unless B is in panels
  int64_t b_panel;  // stride of the panels, in elements
  int64_t depth;
  float* c;
  int64_t c_ld;
  int64_t columns;  // may be fewer than the tile has: B is padded with zeros, C is not
  Start start;
  const float* bias;
  const int16_t* rounded;    // rows of A in bf16, or quantised: one every kBlock numbers of 16 bits
  const int32_t* row_start;  // what the sums of the quantised rows start from,
  const float* row_scale;    // and their scale
  const float* scale;        // of the columns of int8 weights
  float* copy;               // receives B while it is read: [depth][columns of the tile]
  bool stream;               // streaming stores
  Fetch* fetch;              // prefetches one piece per `every` steps of the depth
  int64_t every;
};

// Where the rows of C begin: every `ld` floats, or anywhere.
struct EvenRows {
  float* c;
  int64_t ld;
  float* operator[](int i) const { return c + i * ld; }
};
struct ListedRows {
  float* c;
  const int64_t* offsets;
  float* operator[](int i) const { return c + offsets[i]; }
};

// The block of C that a tile computes: kMr rows of kNv vectors.
template <class V, int kMr, int kNv, class Rows = EvenRows>
class TileOfC {
 public:
  using T = typename V::T;
  // From a row of the tile on.
  explicit TileOfC(const Tile& tile, int64_t row = 0) : TileOfC(tile, EvenRows{tile.c + row * tile.c_ld, tile.c_ld}) {}
  TileOfC(const Tile& tile, Rows rows) : t_(tile), rows_(rows), full_(tile.columns >= kNv * V::lanes) {}

  template <class Body>
  [[gnu::always_inline]] static void each(const Body& body) {
#pragma GCC unroll 32
    for (int i = 0; i < kMr; ++i)
#pragma GCC unroll 32
      for (int v = 0; v < kNv; ++v) body(i, v);
  }

  // Vector v of a row, with zeros for columns that the tile lacks.
  [[gnu::always_inline]] T load(const float* row, int v) const {
    return part(v) >= V::lanes ? V::load(row + v * V::lanes)
           : part(v) > 0       ? V::load_part(row + v * V::lanes, part(v))
                               : V::set1(0.0f);
  }

  [[gnu::always_inline]] void begin(T (&acc)[kMr][kNv]) const {
    if (t_.start == Start::zero)
      each([&](int i, int v) { acc[i][v] = V::set1(0.0f); });
    else if (t_.start == Start::bias)
      each([&](int i, int v) { acc[i][v] = load(t_.bias, v); });
    else if (full_)
      each([&](int i, int v) { acc[i][v] = V::load(at(i, v)); });
    else
      each([&](int i, int v) { acc[i][v] = load(rows_[i], v); });
  }

  [[gnu::always_inline]] void end(const T (&acc)[kMr][kNv]) const {
    if (full_ && t_.stream)
      each([&](int i, int v) { V::stream(at(i, v), acc[i][v]); });
    else if (full_)
      each([&](int i, int v) { V::store(at(i, v), acc[i][v]); });
    else
      each([&](int i, int v) {
        if (part(v) >= V::lanes)
          V::store(at(i, v), acc[i][v]);
        else if (part(v) > 0)
          V::store_part(at(i, v), acc[i][v], part(v));
      });
  }

 private:
  float* at(int i, int v) const { return rows_[i] + v * V::lanes; }
  int part(int v) const { return static_cast<int>(t_.columns - v * V::lanes); }  // columns from vector v on

  const Tile& t_;
  Rows rows_;  // copied from t_, which compilers would reload after each store
  bool full_;
};

// Calls step() for each of `steps` steps of the depth, and prefetches in between. kLong: how many of the steps that
// Tile::every counts a step is.
template <int64_t kLong = 1, class Step>
[[gnu::always_inline]] inline void fetching_steps(const Tile& t, int64_t steps, const Step& step) {
  Fetch fetch = *t.fetch;
  const int64_t every = kLong == 1 ? t.every : max(1, t.every / kLong);
  for (int64_t l = 0; l < steps;) {
    fetch.next();
    const int64_t end = min(steps, l + every);
    for (; l < end; ++l) step();
  }
  *t.fetch = fetch;
}

// Vectors per row of a panel.
template <class V>
constexpr int one_panel() {
  return static_cast<int>(kPanelColumns) / V::lanes;
}

// One step of the depth: adds the product of a column of A, a_at(i), and a row of B, b_at(v).
template <class V, int kMr, int kNv, class ColumnOfA, class RowOfB>
[[gnu::always_inline]] inline void multiply_add(typename V::T (&sum)[kMr][kNv], const ColumnOfA& a_at,
                                                const RowOfB& b_at) {
  using T = typename V::T;
  if constexpr (kMr < kNv) {  // the smaller operand stays in registers: with the sums these are at most 16
    T av[kMr];
#pragma GCC unroll 32
    for (int i = 0; i < kMr; ++i) av[i] = V::set1(a_at(i));
#pragma GCC unroll 32
    for (int v = 0; v < kNv; ++v) {
      const T bv = b_at(v);
#pragma GCC unroll 32
      for (int i = 0; i < kMr; ++i) sum[i][v] = V::fma(av[i], bv, sum[i][v]);
    }
  } else {
    T bv[kNv];
#pragma GCC unroll 32
    for (int v = 0; v < kNv; ++v) bv[v] = b_at(v);
#pragma GCC unroll 32
    for (int i = 0; i < kMr; ++i) {
      const T av = V::set1(a_at(i));
#pragma GCC unroll 32
      for (int v = 0; v < kNv; ++v) sum[i][v] = V::fma(av, bv[v], sum[i][v]);
    }
  }
}

// The fp32 micro-kernel: kMr x (kNv vectors) elements of C stay in registers.
template <class V, int kMr, int kNv, Source kSource>
void run_tile(const Tile& t) {
  using T = typename V::T;
  constexpr bool kCopy = kSource == Source::rows_copied, kPanels = kSource == Source::panels;
  const TileOfC<V, kMr, kNv> c(t);
  T acc[kMr][kNv];
  c.begin(acc);
  const float* a = t.a;
  const float* b = static_cast<const float*>(t.b);
  float* copy = t.copy;
  const int64_t b_step = kPanels ? kPanelColumns : t.b_ld;
  fetching_steps(
      t, t.depth, [&]() __attribute__((always_inline)) {
        multiply_add<V, kMr, kNv>(
            acc, [&](int i) __attribute__((always_inline)) { return a[i * kBlockLd]; },
            [&](int v) __attribute__((always_inline)) {
              const int64_t across = v / one_panel<V>() * t.b_panel + v % one_panel<V>() * V::lanes;
              const T bv = V::load(b + (kPanels ? across : v * V::lanes));
              if constexpr (kCopy) V::store(copy + v * V::lanes, bv);
              return bv;
            });
        ++a;
        b += b_step;
        if constexpr (kCopy) copy += kNv * V::lanes;
      });
  c.end(acc);
}

// Micro-kernels for rows of A in fewer bits (Tile::rounded) and panels that have kTogether rows of the depth together:
// adds the products of these to `sum`. For them A has kWords words of 32 bits. load(p, word): a vector of words of B,
// from p on; add(sum, word of A, words of B).
template <class V, int kMr, int kNv, int kTogether, int kWords, class W, class Sum, class Load, class Add>
[[gnu::always_inline]] inline void multiply_words(const Tile& t, Sum (&sum)[kMr][kNv], const Load& load,
                                                  const Add& add) {
  const int16_t* a = t.rounded;
  const W* b = static_cast<const W*>(t.b);
  fetching_steps(
      t, (t.depth + kTogether - 1) / kTogether, [&]() __attribute__((always_inline)) {
#pragma GCC unroll 2
        for (int word = 0; word < kWords; ++word) {
          typename V::Words bv[kNv];
#pragma GCC unroll 32
          for (int v = 0; v < kNv; ++v)
            bv[v] = load(b + (v / one_panel<V>() * t.b_panel + v % one_panel<V>() * kTogether * V::lanes), word);
#pragma GCC unroll 32
          for (int i = 0; i < kMr; ++i) {
            const auto av = V::set_word(a + i * kBlock + 2 * word);
#pragma GCC unroll 32
            for (int v = 0; v < kNv; ++v) sum[i][v] = add(sum[i][v], av, bv[v]);
          }
        }
        a += 2 * kWords;
        b += kTogether * kPanelColumns;
      });
}

using TileFunction = void (*)(const Tile&);

// Epilogue of columns j .. j + columns of C: stores the pre-activation if requested, then applies the activation.
template <class V>
void finish(const Gemm& p, int64_t j, int64_t columns) {
  if (!p.activates) return;
  for (int64_t i = 0; i < p.m; ++i) {
    float* c = p.c + j / kBlock * p.c_block + i * p.c_ld + j % kBlock;
    float* const kept = p.pre_activation ? p.pre_activation + i * p.pre_activation_ld + j : nullptr;
    if (kept && !p.keeps_slope) std::memcpy(kept, c, static_cast<size_t>(columns) * sizeof(float));
    activate_any<V>(p.activation, c, c, p.keeps_slope ? kept : nullptr, columns);
  }
}

template <class V>
void finish_blocks(const Gemm& p, int64_t columns) {
  for (int64_t j = 0; j < columns; j += kBlock) finish<V>(p, j, min(kBlock, columns - j));
}

// The micro-kernel for a number of rows.
template <class V, Source kSource, int... kRows>
TileFunction select_tile(int64_t rows, std::integer_sequence<int, kRows...>) {
  static constexpr TileFunction table[] = {run_tile<V, kRows + 1, V::tile(false).vectors, kSource>...};
  return table[rows - 1];
}

}  // namespace
}  // namespace sparsight::cpu
