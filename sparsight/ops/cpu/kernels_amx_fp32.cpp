// fp32 products on the tile registers of AMX, which multiply bf16 only. A number is cut into three bf16 parts, high +
// middle + low, of eight bits each: exactly, 24 bits. Of the nine products of parts the six that matter are summed in
// fp32, the smallest first; those left out are below 2^-24 of the product. So the result is as close to the exact one
// as that of a chain of fp32 multiply-adds, at more than twice the speed. An infinite factor gives NaN, and parts
// below 2^-126 count as 0. Few rows do not pay for cutting the weights: the AVX-512 level multiplies them.
#include <cstring>
#include <utility>

#include <immintrin.h>

#include "sparsight/ops/cpu/kernels.h"
#include "sparsight/ops/cpu/kernels_amx.h"

namespace sparsight::cpu {
namespace {

constexpr int64_t kParts = 3;
constexpr int64_t kDeep = 32;                            // elements of the depth in a tile
constexpr int64_t kAcross = 2 * kTileRows;               // rows of A or columns of B that are multiplied at a time
constexpr int64_t kStep = kParts * 2 * kTileBytes;       // of either operand: kDeep x kAcross elements
constexpr int64_t kMostDepth = 256;                      // of a block: two panels of B stay in the first-level cache
constexpr int64_t kMostRows = 384;
constexpr int64_t kFewestRows = 20, kFewestDepth = 20;   // below, the AVX-512 level is faster
constexpr int64_t kFewRows = 64, kDepth = 128, kFewRowsDepth = 64;
constexpr int64_t kTimes = 6;  // a step's products come in so many groups
constexpr int64_t kBlockSteps = kMostDepth / kDeep;

constexpr int64_t kRowsSpace = kMostRows / kAcross * kBlockSteps * kStep;
constexpr int64_t kPanelSpace = kBlockSteps * kStep;
constexpr int64_t kWaitingLd = kBlockLd;

inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t pieces_of(int64_t count, int64_t most) { return (count + most - 1) / most; }
inline __mmask16 first_lanes(int64_t count) {
  return static_cast<__mmask16>(count >= 16 ? 0xffff : count > 0 ? (1 << count) - 1 : 0);
}

// The parts of two vectors, each pair of elements in 32 bits: of `even` in the lower half.
inline void cut(__m512 even, __m512 odd, __m512i* high, __m512i* middle, __m512i* low) {
  constexpr __mmask32 kUpper = 0xaaaaaaaa;
  const auto joined = [&] {
    return _mm512_mask_mov_epi16(_mm512_srli_epi32(_mm512_castps_si512(even), 16), kUpper, _mm512_castps_si512(odd));
  };
  const auto rest = [&](__m512 x) {
    return _mm512_sub_ps(x, _mm512_castsi512_ps(_mm512_maskz_mov_epi16(kUpper, _mm512_castps_si512(x))));
  };
  *high = joined();
  even = rest(even), odd = rest(odd);
  *middle = joined();
  even = rest(even), odd = rest(odd);
  *low = joined();
}

// out[j][i] = in[i][j], 16 x 16 elements of 32 bits.
inline void transpose(const char* in, char* out) {
  for (int q = 0; q < 4; ++q) {
    __m512i r[4];
    for (int i = 0; i < 4; ++i) {
      const auto quarter = [&](int row) {
        return _mm_load_si128(reinterpret_cast<const __m128i*>(in + (row * 4 + i) * 64 + 16 * q));
      };
      __m512i x = _mm512_castsi128_si512(quarter(0));
      x = _mm512_inserti32x4(x, quarter(1), 1);
      x = _mm512_inserti32x4(x, quarter(2), 2);
      r[i] = _mm512_inserti32x4(x, quarter(3), 3);
    }
    const __m512i a = _mm512_unpacklo_epi32(r[0], r[1]), b = _mm512_unpackhi_epi32(r[0], r[1]);
    const __m512i c = _mm512_unpacklo_epi32(r[2], r[3]), d = _mm512_unpackhi_epi32(r[2], r[3]);
    char* to = out + 4 * q * 64;
    _mm512_store_si512(to, _mm512_unpacklo_epi64(a, c));
    _mm512_store_si512(to + 64, _mm512_unpackhi_epi64(a, c));
    _mm512_store_si512(to + 128, _mm512_unpacklo_epi64(b, d));
    _mm512_store_si512(to + 192, _mm512_unpackhi_epi64(b, d));
  }
}

// An operand in memory: element (deep, across) is at[deep * ld + across], or at[deep + across * ld] if not `deep_rows`.
struct Source {
  const float* at;
  int64_t ld, depth, across;
  bool deep_rows;
};

// Three lines of tiles from two vectors: the parts lie `apart` bytes from each other.
inline void put_line(char* to, int64_t apart, __m512 even, __m512 odd) {
  __m512i high, middle, low;
  cut(even, odd, &high, &middle, &low);
  _mm512_store_si512(to, high);
  _mm512_store_si512(to + apart, middle);
  _mm512_store_si512(to + 2 * apart, low);
}

// Cuts kDeep x 16 elements, from (0, 0) of `s` on, into the tiles at to, to + 2 kTileBytes and to + 4 kTileBytes, whose
// rows are along the depth if `rows_are_deep` and else across it. Elements l and l + 16 of the depth make a pair. What
// is not there is 0.
inline void cut_tile(const Source& s, bool rows_are_deep, char* to) {
  alignas(64) char space[kParts * kTileBytes];
  const bool turned = s.deep_rows != rows_are_deep;
  char* const out = turned ? space : to;
  const int64_t apart = turned ? kTileBytes : 2 * kTileBytes;
  if (s.deep_rows && s.depth >= kDeep && s.across >= 16) {
#pragma GCC unroll 4
    for (int64_t r = 0; r < 16; ++r)
      put_line(out + r * 64, apart, _mm512_loadu_ps(s.at + r * s.ld), _mm512_loadu_ps(s.at + (r + 16) * s.ld));
  } else if (s.deep_rows) {
    const __mmask16 across = first_lanes(s.across);
    for (int64_t r = 0; r < 16; ++r)
      put_line(out + r * 64, apart, _mm512_maskz_loadu_ps(r < s.depth ? across : 0, s.at + r * s.ld),
               _mm512_maskz_loadu_ps(r + 16 < s.depth ? across : 0, s.at + (r + 16) * s.ld));
  } else if (!turned && s.depth >= kDeep) {
#pragma GCC unroll 4
    for (int64_t r = 0; r < least(16, s.across); ++r)
      put_line(out + r * 64, apart, _mm512_loadu_ps(s.at + r * s.ld), _mm512_loadu_ps(s.at + r * s.ld + 16));
  } else {
    const __mmask16 lower = first_lanes(s.depth), upper = first_lanes(s.depth - 16);
    const int64_t rows = turned ? 16 : least(16, s.across);  // of A: nobody reads the rows that are not there
    for (int64_t r = 0; r < rows; ++r)
      put_line(out + r * 64, apart, _mm512_maskz_loadu_ps(r < s.across ? lower : 0, s.at + r * s.ld),
               _mm512_maskz_loadu_ps(r < s.across ? upper : 0, s.at + r * s.ld + 16));
  }
  if (turned)
    for (int64_t part = 0; part < kParts; ++part) transpose(space + part * kTileBytes, to + part * 2 * kTileBytes);
}

// Rows of A, at most 2 tile_rows: its steps one after the other.
inline void cut_rows(const Source& s, int64_t tile_rows, char* to) {
  for (int64_t l = 0; l < s.depth; l += kDeep, to += kStep)
    for (int64_t first = 0; first < s.across; first += tile_rows) {
      const float* at = s.deep_rows ? s.at + l * s.ld + first : s.at + first * s.ld + l;
      cut_tile({at, s.ld, s.depth - l, least(tile_rows, s.across - first), s.deep_rows}, false,
               to + (first > 0 ? kTileBytes : 0));
    }
}

// Cuts a panel of B bit by bit, while another one is multiplied: its steps one after the other.
class Cutter {
 public:
  Cutter(const Source& source, char* to) : source_(source), to_(to) {
    left_ = pieces_of(source.depth, kDeep) * kUnits;
  }

  // To be called `times` times before all is cut.
  void spread_over(int64_t times) { all_ = left_, times_ = times; }
  void cut_some() {
    for (credit_ += all_; credit_ >= times_ && left_ > 0; credit_ -= times_) cut_next();
  }
  void cut_all() {
    while (left_ > 0) cut_next();
  }

 private:
  static constexpr int64_t kUnits = 4, kPairs = 16 / kUnits;  // units of a step: some pairs of rows, or half a tile

  [[gnu::noinline]] void cut_next() {
    --left_;
    const int64_t l = step_ * kDeep;
    char* const to = to_ + step_ * kStep;
    if (!source_.deep_rows) {
      if (unit_ % 2 == 0) {
        const int64_t column = unit_ / 2 * 16;
        cut_tile({source_.at + column * source_.ld + l, source_.ld, source_.depth - l, source_.across - column, false},
                 true, to + unit_ / 2 * kTileBytes);
      }
    } else if (l + kDeep <= source_.depth && source_.across >= kAcross) {
      const float *even = source_.at + (l + unit_ * kPairs) * source_.ld, *odd = even + 16 * source_.ld;
#pragma GCC unroll 8
      for (int64_t i = 0; i < kPairs; ++i)
        for (int64_t tile = 0; tile < 2; ++tile)
          put_line(to + tile * kTileBytes + (unit_ * kPairs + i) * 64, 2 * kTileBytes,
                   _mm512_loadu_ps(even + i * source_.ld + tile * 16),
                   _mm512_loadu_ps(odd + i * source_.ld + tile * 16));
    } else if (unit_ % 2 == 0) {
      const int64_t column = unit_ / 2 * 16;
      cut_tile({source_.at + l * source_.ld + column, source_.ld, source_.depth - l, source_.across - column, true},
               true, to + unit_ / 2 * kTileBytes);
    }
    if (++unit_ == kUnits) unit_ = 0, ++step_;
  }

  Source source_;
  char* to_;
  int64_t left_ = 0, all_ = 0, times_ = 1, credit_ = 0;
  int64_t step_ = 0, unit_ = 0;
};

// What is read later, fetched into the second-level cache row by row.
class Fetcher {
 public:
  Fetcher() = default;
  Fetcher(const Source& s, int64_t times) : at_(reinterpret_cast<const char*>(s.at)), apart_(s.ld * 4) {
    lines_ = pieces_of((s.deep_rows ? s.across : s.depth) * 4, 64);
    rows_ = s.at ? (s.deep_rows ? s.depth : s.across) : 0;
    each_ = pieces_of(rows_ * lines_, times);
  }
  void fetch_some() {
    for (int64_t i = 0; i < each_ && rows_ > 0; ++i) {
      _mm_prefetch(at_ + line_ * 64, _MM_HINT_T1);
      if (++line_ == lines_) line_ = 0, at_ += apart_, --rows_;
    }
  }

 private:
  const char* at_ = nullptr;
  int64_t apart_ = 0, lines_ = 0, rows_ = 0, each_ = 0, line_ = 0;
};

// What happens between the products of tiles.
struct Meanwhile {
  Cutter& cutter;
  Fetcher& fetcher;
  void operator()() const {
    cutter.cut_some();
    fetcher.fetch_some();
  }
};

inline void memory_is_up_to_date() { asm volatile("" ::: "memory"); }

// Tiles 0 to 3 (0 and 1, if not kTwo) += the rows at `a` times the columns at `b`.
template <bool kTwo>
inline void multiply_steps(const char* a, const char* b, int64_t steps, const Meanwhile& meanwhile) {
  constexpr int64_t kHigh = 0, kMiddle = 2 * kTileBytes, kLow = 4 * kTileBytes;
  for (int64_t step = 0; step < steps; ++step, a += kStep, b += kStep) {
#define LOAD_A(part)                                          \
  _tile_loadd(4, a + (part), 64);                             \
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

// Of C, what two by two tiles hold: starts as what lies at `from`, or 0 if that is null.
struct Square {
  const float* from;
  int64_t from_ld;
  float* to;
  int64_t to_ld, rows, columns;
  bool stream;
};

template <bool kTwo>
inline void multiply_square(const char* a, const char* b, int64_t steps, int64_t tile_rows, const Square& c,
                            const Meanwhile& meanwhile) {
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
  memory_is_up_to_date();
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
  memory_is_up_to_date();
  if (direct) return;
  each_half_row([&](const float* inside, int64_t i, int64_t half, __mmask16 lanes) {
    float* const outside = c.to + i * c.to_ld + half;
    if (c.stream && lanes == 0xffff && (reinterpret_cast<uintptr_t>(outside) & 63) == 0)
      _mm512_stream_ps(outside, _mm512_load_ps(inside));
    else
      _mm512_mask_storeu_ps(outside, lanes, _mm512_load_ps(inside));
  });
}

// Rows `first` to `first + rows` of C.
void multiply_rows(const Product& p, int64_t first, int64_t rows, char* space) {
  const int64_t tiles = pieces_of(rows, kTileRows), tile_rows = pieces_of(rows, tiles);
  const int64_t block_rows = 2 * tile_rows, blocks = (tiles + 1) / 2;
  const TileRegisters registers(tile_rows);
  const float* const weights = static_cast<const float*>(p.b);
  const auto c_at = [&](int64_t i, int64_t j) {
    return p.c + j / kBlock * p.c_block + (first + i) * p.c_ld + j % kBlock;
  };
  if (p.bias && !p.accumulate)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < p.n; j += kBlock)
        std::memcpy(c_at(i, j), p.bias + j, static_cast<size_t>(least(kBlock, p.n - j)) * sizeof(float));

  // The blocks of B in their order: all columns of some of the depth. A depth of A that is not transposed must not cross
  // its blocks.
  const int64_t even = pieces_of(pieces_of(p.k, pieces_of(p.k, kMostDepth)), kDeep) * kDeep;
  const int64_t most = p.a_transposed ? even : rows <= kFewRows ? kFewRowsDepth : kDepth;
  const auto depth_at = [&](int64_t l) { return least(most, p.k - l); };
  const auto source_at = [&](int64_t l, int64_t j, int64_t across) -> Source {
    return {p.b_transposed ? weights + j * p.b_ld + l : weights + l * p.b_ld + j, p.b_ld, depth_at(l), across,
            !p.b_transposed};
  };
  // What is stored past the caches waits for its last part in a place that stays in the cache.
  const bool waits = p.stream && p.n <= kBlock;
  float* const waiting = reinterpret_cast<float*>(space + kRowsSpace + 2 * kPanelSpace);
  char* panels[] = {space + kRowsSpace, space + kRowsSpace + kPanelSpace};
  Cutter(source_at(0, 0, least(kAcross, p.n)), panels[0]).cut_all();
  for (int64_t l = 0; l < p.k; l += most) {
    const int64_t depth = depth_at(l), steps = pieces_of(depth, kDeep);
    const bool last = l + most >= p.k;
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t i = first + block * block_rows;
      const float* a = p.a_transposed ? p.a + l * p.a_ld + i : p.a + l / kBlock * p.a_block + i * kBlockLd + l % kBlock;
      cut_rows({a, p.a_transposed ? p.a_ld : kBlockLd, depth, least(block_rows, first + rows - i), p.a_transposed},
               tile_rows, space + block * steps * kStep);
    }
    const int64_t times = blocks * steps * kTimes;  // for each panel
    const Source next{static_cast<const float*>(p.next), p.next_ld, most, p.n, !p.b_transposed};
    Fetcher fetcher(last ? next : source_at(l + most, 0, p.n), times * pieces_of(p.n, kAcross));
    for (int64_t j = 0; j < p.n; j += kAcross) {
      const bool last_panel = j + kAcross >= p.n;
      const int64_t then_l = last_panel ? l + most : l, then_j = last_panel ? 0 : j + kAcross;
      Cutter cutter(then_l < p.k ? source_at(then_l, then_j, least(kAcross, p.n - then_j)) : Source{}, panels[1]);
      cutter.spread_over(times);
      for (int64_t block = 0; block < blocks; ++block) {
        const int64_t i = block * block_rows;
        float *const c_here = c_at(i, j), *const c_waiting = waiting + i * kWaitingLd + j;
        Square c{nullptr, p.c_ld, c_here, p.c_ld, least(block_rows, rows - i), least(kAcross, p.n - j),
                 p.stream && last};
        if (l > 0 || p.accumulate || p.bias) c.from = c_here;
        if (waits && l > 0) c.from = c_waiting, c.from_ld = kWaitingLd;
        if (waits && !last) c.to = c_waiting, c.to_ld = kWaitingLd;
        const char* const a = space + block * steps * kStep;
        if (c.rows > tile_rows)
          multiply_square<true>(a, panels[0], steps, tile_rows, c, {cutter, fetcher});
        else
          multiply_square<false>(a, panels[0], steps, tile_rows, c, {cutter, fetcher});
      }
      cutter.cut_all();
      std::swap(panels[0], panels[1]);
    }
  }
  if (p.activation >= 0)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < p.n; j += kBlock) {
        float* const c = c_at(i, j);
        const int64_t columns = least(kBlock, p.n - j);
        if (p.before)
          std::memcpy(p.before + (first + i) * p.before_ld + j, c, static_cast<size_t>(columns) * sizeof(float));
        kernels_avx512().activate(p.activation, c, c, nullptr, columns);
      }
}

void product(const Product& p, float* space) {
  if (p.b_type != WeightType::fp32 || p.m < kFewestRows || p.k < kFewestDepth || p.n == 0)
    return kernels_avx512().product(p, space);
  const int64_t blocks = pieces_of(p.m, kMostRows);
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t first = p.m * block / blocks;
    multiply_rows(p, first, p.m * (block + 1) / blocks - first, reinterpret_cast<char*>(space));
  }
  if (p.stream) _mm_sfence();
}

}  // namespace

const Kernels& kernels_amx() {
  static const Kernels table = [] {
    Kernels kernels = kernels_avx512();
    kernels.product = product;
    const int64_t floats = (kRowsSpace + 2 * kPanelSpace) / 4 + kMostRows * kWaitingLd;
    if (floats > kernels.panel_floats) kernels.panel_floats = floats;
    return kernels;
  }();
  return table;
}

}  // namespace sparsight::cpu
