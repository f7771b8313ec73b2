// The fp32 GEMMs of the amx level, on tile registers that multiply bf16 only: the bf16x3 split (diagram:
// docs/kernels.md). Each number is split into three bf16 parts (gemm/amx_parts_inl.h). Of the nine products of parts
// the six that matter are summed in fp32, the smallest first; the others are below 2^-24 of the whole. The result is
// closer to the exact one than a chain of fp32 multiply-adds, which rounds more often, and up to 1.8 times as fast. An
// infinite factor gives NaN, and parts below 2^-126 count as 0. Chosen for plain weights from kFewestRows rows and a
// depth of kFewestDepth on: below, splitting the weights does not pay, and the kernels of the avx512 level run.
#include <cstring>
#include <utility>

#include <immintrin.h>

#include "sparsight/kernels/gemm/amx.h"
#include "sparsight/kernels/gemm/amx_parts_inl.h"
#include "sparsight/kernels/gemm/fetch_inl.h"
#include "sparsight/kernels/isa/x86_64.h"
#include "sparsight/kernels/kernels.h"

namespace sparsight::cpu {
namespace {

// Block sizes: two panels of B stay in L1, the split rows of A in L2.
constexpr int64_t kMaxRows = 384, kMaxDepth = 256, kDepth = 128;
constexpr int64_t kSmallM = 64, kSmallMDepth = 32;      // up to kSmallM rows, those stay in L1 too
constexpr int64_t kFewestRows = 16, kFewestDepth = 20;  // below, the avx512 level is faster
constexpr int64_t kFewestQuantised = 4;                 // rows, with int8 weights: below, the avx512 level is faster
constexpr int64_t kTimes = 6;                           // products of parts per step, with interleaved work after each

constexpr int64_t kPanelSpace = kMaxDepth / kDeep * kStep;
constexpr int64_t kRowsSpace = kMaxRows / kAcross * kPanelSpace;
constexpr int64_t kSmallMMaxDepth = 4 * kBlock;  // depth at a time with B transposed: reads longer pieces of its rows
static_assert(kSmallM * kSmallMMaxDepth <= kMaxRows * kMaxDepth && kBlock % kDeep == 0);
constexpr int64_t kWaitingLd = kBlockLd;

constexpr int64_t kFetched = 128;  // bytes per prefetch
Fetch make_fetch(const Source& s) {
  const int64_t rows = s.deep_rows ? s.depth : s.across, columns = s.deep_rows ? s.across : s.depth;
  return {s.at, rows, columns * 4, s.ld * 4, kFetched, Fetch::kStreams};
}

// Interleaved work, done between the products of tiles: splits the panel that is multiplied next, and prefetches the
// weights after it.
struct InterleavedWork {
  Bf16x3Splitter& splitter;
  Fetch& fetch;
  Pacer& fetching;
  void operator()() const {
    splitter.split_some();
    fetching.call([this] { fetch.next<Fetch::kNotFirst>(); });
  }
};

// Tiles 0 to 3 (0 and 1, if not kTwo) += the rows at `a` times the columns at `b`.
template <bool kTwo>
inline void multiply_steps(const char* a, const char* b, int64_t steps, const InterleavedWork& meanwhile) {
  constexpr int64_t kHigh = 0, kMiddle = 2 * kTileBytes, kLow = 4 * kTileBytes;
  for (int64_t step = 0; step < steps; ++step, a += kStep, b += kStep) {
#define LOAD_A(part)              \
  _tile_loadd(4, a + (part), 64); \
  if constexpr (kTwo) _tile_loadd(5, a + (part) + kTileBytes, 64)
#define LOAD_B(part)              \
  _tile_loadd(6, b + (part), 64); \
  _tile_loadd(7, b + (part) + kTileBytes, 64)
#define MULTIPLY()           \
  _tile_dpbf16ps(0, 4, 6);   \
  _tile_dpbf16ps(1, 4, 7);   \
  if constexpr (kTwo) {      \
    _tile_dpbf16ps(2, 5, 6); \
    _tile_dpbf16ps(3, 5, 7); \
  }                          \
  meanwhile()
    LOAD_A(kHigh);
    LOAD_B(kLow);
    MULTIPLY();
    LOAD_B(kMiddle);
    MULTIPLY();
    LOAD_A(kMiddle);
    MULTIPLY();
    LOAD_B(kHigh);
    MULTIPLY();
    LOAD_A(kLow);
    MULTIPLY();
    LOAD_A(kHigh);
    MULTIPLY();
#undef LOAD_A
#undef LOAD_B
#undef MULTIPLY
  }
}

// A block of C of two by two tiles: starts from the numbers at `from`, or from 0 if that is null.
struct Square {
  const float* from;
  int64_t from_ld;
  float* to;
  int64_t to_ld, rows, columns;
  bool stream;
};

template <bool kTwo>
inline void multiply_square(const char* a, const char* b, int64_t steps, int64_t tile_rows, const Square& c,
                            const InterleavedWork& meanwhile) {
  alignas(64) float edge[2 * kTileRows * kAcross];
  const bool whole = c.rows == (kTwo ? 2 : 1) * tile_rows && c.columns == kAcross;
  const auto each_half_row = [&](const auto& body) {
    for (int64_t i = 0; i < c.rows; ++i)
      for (int64_t half = 0; half < kAcross; half += 16)
        body(edge + i * kAcross + half, i, half, first_lanes(c.columns - half));
  };
  if (c.from && !whole)
    each_half_row([&](float* inside, int64_t i, int64_t half, __mmask16 lanes) {
      _mm512_store_ps(inside, _mm512_maskz_loadu_ps(lanes, c.from + i * c.from_ld + half));
    });
  compiler_barrier();
  if (c.from) {
    const float* from = whole ? c.from : edge;
    const int64_t ld = whole ? c.from_ld : kAcross;
    _tile_loadd(0, from, ld * 4);
    _tile_loadd(1, from + 16, ld * 4);
    if constexpr (kTwo) {
      _tile_loadd(2, from + tile_rows * ld, ld * 4);
      _tile_loadd(3, from + tile_rows * ld + 16, ld * 4);
    }
  } else {
    _tile_zero(0);
    _tile_zero(1);
    if constexpr (kTwo) {
      _tile_zero(2);
      _tile_zero(3);
    }
  }
  multiply_steps<kTwo>(a, b, steps, meanwhile);
  const bool direct = whole && !c.stream;
  float* const to = direct ? c.to : edge;
  const int64_t ld = direct ? c.to_ld : kAcross;
  _tile_stored(0, to, ld * 4);
  _tile_stored(1, to + 16, ld * 4);
  if constexpr (kTwo) {
    _tile_stored(2, to + tile_rows * ld, ld * 4);
    _tile_stored(3, to + tile_rows * ld + 16, ld * 4);
  }
  compiler_barrier();
  if (direct) return;
  each_half_row([&](const float* inside, int64_t i, int64_t half, __mmask16 lanes) {
    float* const outside = c.to + i * c.to_ld + half;
    if (c.stream && lanes == 0xffff && (reinterpret_cast<uintptr_t>(outside) & 63) == 0)
      _mm512_stream_ps(outside, _mm512_load_ps(inside));
    else
      _mm512_mask_storeu_ps(outside, lanes, _mm512_load_ps(inside));
  });
}

// Tiles 0 to 3, kAcross x kAcross elements: to and from memory.
inline void zero_tiles() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}
inline void load_tiles(const char* from) {
  compiler_barrier();
  _tile_loadd(0, from, 64);
  _tile_loadd(1, from + kTileBytes, 64);
  _tile_loadd(2, from + 2 * kTileBytes, 64);
  _tile_loadd(3, from + 3 * kTileBytes, 64);
}
inline void store_tiles(char* to) {
  _tile_stored(0, to, 64);
  _tile_stored(1, to + kTileBytes, 64);
  _tile_stored(2, to + 2 * kTileBytes, 64);
  _tile_stored(3, to + 3 * kTileBytes, 64);
  compiler_barrier();
}

// C(i.., j..) = the transpose of the tiles, clipped to C, + C if `from_c`, else + bias.
void store_transposed(const char* tiles, const Gemm& p, int64_t i, int64_t j, bool from_c) {
  alignas(64) char transposed[kTileBytes];
  for (int64_t tile = 0; tile < 4; ++tile) {
    const int64_t row = i + tile % 2 * 16, column = j + tile / 2 * 16;
    const __mmask16 lanes = first_lanes(p.n - column);
    if (row >= p.m || lanes == 0) continue;
    transpose(tiles + tile * kTileBytes, transposed);
    const __m512 bias = p.bias ? _mm512_maskz_loadu_ps(lanes, p.bias + column) : _mm512_setzero_ps();
    for (int64_t r = 0; r < min(16, p.m - row); ++r) {
      float* const c = p.c + column / kBlock * p.c_block + (row + r) * p.c_ld + column % kBlock;
      const __m512 start = from_c ? _mm512_maskz_loadu_ps(lanes, c) : bias;
      _mm512_mask_storeu_ps(c, lanes, _mm512_add_ps(start, _mm512_load_ps(transposed + r * 64)));
    }
  }
}

// Prefetch target: up to `rows` rows of the matrix that is read after this product.
Source next_matrix(const Gemm& p, int64_t rows) {
  return {static_cast<const float*>(p.prefetch), p.prefetch_ld, min(rows, p.prefetch_rows), p.prefetch_columns, true};
}

// Element (i, j) of C, whose columns are in blocks of kBlock.
float* element_of_c(const Gemm& p, int64_t i, int64_t j) {
  return p.c + j / kBlock * p.c_block + i * p.c_ld + j % kBlock;
}

void start_with_bias(const Gemm& p, int64_t first, int64_t rows) {
  for (int64_t i = first; i < first + rows; ++i)
    for (int64_t j = 0; j < p.n; j += kBlock)
      std::memcpy(element_of_c(p, i, j), p.bias + j, static_cast<size_t>(min(kBlock, p.n - j)) * sizeof(float));
}

void activate_rows(const Gemm& p, int64_t first, int64_t rows) {
  for (int64_t i = first; i < first + rows; ++i)
    for (int64_t j = 0; j < p.n; j += kBlock) {
      float* const c = element_of_c(p, i, j);
      const int64_t columns = min(kBlock, p.n - j);
      float* const kept = p.pre_activation ? p.pre_activation + i * p.pre_activation_ld + j : nullptr;
      if (kept && !p.keeps_slope) std::memcpy(kept, c, static_cast<size_t>(columns) * sizeof(float));
      kernels_avx512().activate(p.activation, c, c, p.keeps_slope ? kept : nullptr, columns);
    }
}

// Rows `first` to `first + rows` of C. space: scratch for the split rows, two panels and sums that wait.
void multiply_rows(const Gemm& p, int64_t first, int64_t rows, char* space) {
  const int64_t tiles = count_pieces(rows, kTileRows), tile_rows = count_pieces(rows, tiles);
  const int64_t block_rows = 2 * tile_rows, blocks = (tiles + 1) / 2;
  const TileRegisters registers(tile_rows);
  const float* const weights = static_cast<const float*>(p.b);
  const auto c_at = [&](int64_t i, int64_t j) { return element_of_c(p, first + i, j); };
  if (p.bias && !p.accumulate) start_with_bias(p, first, rows);

  // B is multiplied in blocks of the depth, all columns of each. If A is not transposed, such a block must not cross
  // the blocks of A.
  const int64_t even = count_pieces(count_pieces(p.k, count_pieces(p.k, kMaxDepth)), kDeep) * kDeep;
  const int64_t maximum = p.a_transposed ? even : rows <= kSmallM ? kSmallMDepth : kDepth;
  const auto depth_at = [&](int64_t l) { return min(maximum, p.k - l); };
  const auto source_at = [&](int64_t l, int64_t j, int64_t across) -> Source {
    return {p.b_transposed ? weights + j * p.b_ld + l : weights + l * p.b_ld + j, p.b_ld, depth_at(l), across,
            !p.b_transposed};
  };
  // Streaming stores: sums wait in scratch that stays in the cache until the last block of the depth.
  const bool waits = p.stream && p.n <= kBlock;
  float* const waiting = reinterpret_cast<float*>(space + kRowsSpace + 2 * kPanelSpace);
  char* panels[] = {space + kRowsSpace, space + kRowsSpace + kPanelSpace};
  Bf16x3Splitter(source_at(0, 0, min(kAcross, p.n)), panels[0], true).split_all();
  for (int64_t l = 0; l < p.k; l += maximum) {
    const int64_t depth = depth_at(l), steps = count_pieces(depth, kDeep);
    const bool last = l + maximum >= p.k;
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t i = first + block * block_rows;
      const float* a = p.a_transposed ? p.a + l * p.a_ld + i : p.a + l / kBlock * p.a_block + i * kBlockLd + l % kBlock;
      split_rows({a, p.a_transposed ? p.a_ld : kBlockLd, depth, min(block_rows, first + rows - i), p.a_transposed},
                 tile_rows, space + block * steps * kStep);
    }
    const int64_t times = blocks * steps * kTimes;  // calls of the interleaved work per panel
    Fetch fetch = make_fetch(last ? next_matrix(p, maximum) : source_at(l + maximum, 0, p.n));
    Pacer fetching(fetch.left, times * count_pieces(p.n, kAcross));
    for (int64_t j = 0; j < p.n; j += kAcross) {
      const bool last_panel = j + kAcross >= p.n;
      const int64_t then_l = last_panel ? l + maximum : l, then_j = last_panel ? 0 : j + kAcross;
      Bf16x3Splitter splitter(then_l < p.k ? source_at(then_l, then_j, min(kAcross, p.n - then_j)) : Source{},
                              panels[1], true);
      splitter.spread_over(times);
      for (int64_t block = 0; block < blocks; ++block) {
        const int64_t i = block * block_rows;
        float *const c_here = c_at(i, j), *const c_waiting = waiting + i * kWaitingLd + j;
        Square c{nullptr, p.c_ld, c_here, p.c_ld, min(block_rows, rows - i), min(kAcross, p.n - j), p.stream && last};
        if (l > 0 || p.accumulate || p.bias) c.from = c_here;
        if (waits && l > 0) c.from = c_waiting, c.from_ld = kWaitingLd;
        if (waits && !last) c.to = c_waiting, c.to_ld = kWaitingLd;
        const char* const a = space + block * steps * kStep;
        if (c.rows > tile_rows)
          multiply_square<true>(a, panels[0], steps, tile_rows, c, {splitter, fetch, fetching});
        else
          multiply_square<false>(a, panels[0], steps, tile_rows, c, {splitter, fetch, fetching});
      }
      splitter.split_all();
      std::swap(panels[0], panels[1]);
    }
  }
  if (p.activates) activate_rows(p, first, rows);
}

// Up to kSmallM rows with B transposed (gradients of rows and of the hidden layer): computes the transpose of the
// product, so that B is split in memory order by whole rows, and only the M rows of A are transposed. A chunk of
// kAcross rows of B is in L1 while the next one is split.
void gemm_small_m_transposed(const Gemm& p, char* space) {
  const float* const weights = static_cast<const float*>(p.b);
  const TileRegisters registers(kTileRows);
  const int64_t blocks = count_pieces(p.m, kAcross);
  char* chunks[] = {space + kRowsSpace, space + kRowsSpace + kPanelSpace};
  alignas(64) char sums[kSmallM / kAcross * 4 * kTileBytes];
  for (int64_t l = 0; l < p.k; l += kSmallMMaxDepth) {
    const int64_t depth = min(kSmallMMaxDepth, p.k - l), steps = count_pieces(depth, kDeep);
    const bool last = l + kSmallMMaxDepth >= p.k;
    const auto rows_of_b = [&](int64_t deep, int64_t j) -> Source {
      return {weights + j * p.b_ld + deep, p.b_ld, min(kSmallMMaxDepth, p.k - deep), min(kAcross, p.n - j), false};
    };
    const auto chunk_of_b = [&](int64_t deep, int64_t j) {
      Source s = rows_of_b(l, j).part(deep, 0, kAcross);
      s.depth = min(kSmallMDepth, s.depth);
      return s;
    };
    for (int64_t block = 0; block < blocks; ++block)
      for (int64_t deep = 0; deep < depth; deep += kBlock) {
        const int64_t i = block * kAcross;
        const float* const a = p.a + (l + deep) / kBlock * p.a_block + i * kBlockLd;
        Bf16x3Splitter({a, kBlockLd, min(kBlock, depth - deep), min(kAcross, p.m - i), false},
                       space + (block * steps + deep / kDeep) * kStep, true)
            .split_all();
      }
    Bf16x3Splitter(chunk_of_b(0, 0), chunks[0], false).split_all();
    for (int64_t j = 0; j < p.n; j += kAcross) {
      const int64_t upcoming = j + kAcross;
      Fetch fetch = make_fetch(upcoming < p.n ? rows_of_b(l, upcoming)
                               : last         ? next_matrix(p, kAcross)
                                              : rows_of_b(l + kSmallMMaxDepth, 0));
      Pacer fetching(fetch.left, blocks * steps * kTimes);
      for (int64_t deep = 0; deep < depth; deep += kSmallMDepth) {
        const bool ends = deep + kSmallMDepth >= depth;
        const int64_t here = count_pieces(min(kSmallMDepth, depth - deep), kDeep);
        Bf16x3Splitter splitter(!ends            ? chunk_of_b(deep + kSmallMDepth, j)
                                : upcoming < p.n ? chunk_of_b(0, upcoming)
                                                 : Source{},
                                chunks[1], false);
        splitter.spread_over(blocks * here * kTimes);
        for (int64_t block = 0; block < blocks; ++block) {
          char* const scratch = sums + block * 4 * kTileBytes;
          if (deep == 0)
            zero_tiles();
          else if (blocks > 1)
            load_tiles(scratch);
          compiler_barrier();
          multiply_steps<true>(chunks[0], space + (block * steps + deep / kDeep) * kStep, here,
                               {splitter, fetch, fetching});
          if (ends || blocks > 1) store_tiles(scratch);
          if (ends) store_transposed(scratch, p, block * kAcross, j, l > 0 || p.accumulate);
        }
        splitter.split_all();
        std::swap(chunks[0], chunks[1]);
      }
    }
  }
}

void product(const Gemm& p, float* space) {
  if (p.b_panels ? p.b_type == WeightType::bf16 : p.bf16_products && p.m >= kFewestRows)
    return amx_bf16_product(p, space);
  if (p.b_panels && p.b_type == WeightType::int8 && p.m >= kFewestQuantised) return amx_int8_product(p, space);
  if (p.b_panels || p.bf16_products || p.m < kFewestRows || p.k < kFewestDepth || p.n == 0) {
    Gemm in_vectors = p;
    in_vectors.streams = Fetch::kStreams;
    return kernels_avx512_bf16().product(in_vectors, space);
  }
  if (p.b_transposed && !p.a_transposed && p.m <= kSmallM && !p.activates)
    return gemm_small_m_transposed(p, reinterpret_cast<char*>(space));
  const int64_t blocks = count_pieces(p.m, kMaxRows);
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t first = p.m * block / blocks;
    multiply_rows(p, first, p.m * (block + 1) / blocks - first, reinterpret_cast<char*>(space));
  }
  if (p.stream) _mm_sfence();
}

}  // namespace

const Kernels& kernels_amx() {
  static const Kernels table = [] {
    Kernels kernels = kernels_avx512_bf16();
    kernels.product = product;
    // CPUs with AMX multiply pairs of bf16 in vectors at half the rate of fp32.
    kernels.attention_forward = kernels_avx512().attention_forward;
    kernels.task_rows = 208;
    kernels.fewest_rows = 65;
    kernels.has_tiles = true;
    const int64_t floats = (kRowsSpace + 2 * kPanelSpace) / 4 + kMaxRows * kWaitingLd;
    kernels.panel_floats = max(kernels.panel_floats, max(floats, kAmxBf16Floats));
    return kernels;
  }();
  return table;
}

}  // namespace sparsight::cpu
