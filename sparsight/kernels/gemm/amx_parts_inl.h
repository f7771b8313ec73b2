// The bf16x3 split: fp32 matrices as three bf16 parts, high + middle + low, of eight significant bits each (exactly: 24
// bits), stored as tiles (diagram: docs/kernels.md, "bf16x3 split"). Included by gemm/amx_fp32.cpp only. Tiles: see
// gemm/amx.h.
#pragma once

#include <immintrin.h>

#include "sparsight/kernels/gemm/amx.h"

namespace sparsight::cpu {
namespace {

constexpr int64_t kParts = 3;
constexpr int64_t kDeep = 32;                       // elements of the depth in a tile
constexpr int64_t kAcross = 2 * kTileRows;          // rows of A or columns of B that are multiplied at a time
constexpr int64_t kStep = kParts * 2 * kTileBytes;  // bytes of kDeep x kAcross elements of either operand

inline int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }
inline int64_t count_pieces(int64_t count, int64_t maximum) { return (count + maximum - 1) / maximum; }
inline __mmask16 first_lanes(int64_t count) {
  return static_cast<__mmask16>(count >= 16 ? 0xffff : count > 0 ? (1 << count) - 1 : 0);
}

// The parts of two vectors. Each pair of elements shares 32 bits, with `even` in the lower half.
inline void bf16x3_split(__m512 even, __m512 odd, __m512i* high, __m512i* middle, __m512i* low) {
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

  // The part that begins at (deep, first): the rest of the depth, and at most `maximum` across.
  Source part(int64_t deep, int64_t first, int64_t maximum) const {
    return {deep_rows ? at + deep * ld + first : at + first * ld + deep, ld, depth - deep, min(maximum, across - first),
            deep_rows};
  }
};

// Stores the parts of two vectors as three tile rows, `stride` bytes from each other.
inline void put_line(char* to, int64_t stride, __m512 even, __m512 odd) {
  __m512i high, middle, low;
  bf16x3_split(even, odd, &high, &middle, &low);
  _mm512_store_si512(to, high);
  _mm512_store_si512(to + stride, middle);
  _mm512_store_si512(to + 2 * stride, low);
}

// Splits kDeep x 16 elements, from (0, 0) of `s` on, into the tiles at to, to + 2 kTileBytes and to + 4 kTileBytes.
// Rows of the tiles run along the depth if `rows_are_deep`, else across it. Elements l and l + 16 of the depth make a
// pair. Missing elements are 0.
inline void split_tile(const Source& s, bool rows_are_deep, char* to) {
  alignas(64) char space[kParts * kTileBytes];
  const bool transposed = s.deep_rows != rows_are_deep;
  char* const out = transposed ? space : to;
  const int64_t stride = transposed ? kTileBytes : 2 * kTileBytes;
  if (s.deep_rows && s.depth >= kDeep && s.across >= 16) {
#pragma GCC unroll 4
    for (int64_t r = 0; r < 16; ++r)
      put_line(out + r * 64, stride, _mm512_loadu_ps(s.at + r * s.ld), _mm512_loadu_ps(s.at + (r + 16) * s.ld));
  } else if (s.deep_rows) {
    const __mmask16 across = first_lanes(s.across);
    for (int64_t r = 0; r < 16; ++r)
      put_line(out + r * 64, stride, _mm512_maskz_loadu_ps(r < s.depth ? across : 0, s.at + r * s.ld),
               _mm512_maskz_loadu_ps(r + 16 < s.depth ? across : 0, s.at + (r + 16) * s.ld));
  } else if (!transposed && s.depth >= kDeep) {
#pragma GCC unroll 4
    for (int64_t r = 0; r < min(16, s.across); ++r)
      put_line(out + r * 64, stride, _mm512_loadu_ps(s.at + r * s.ld), _mm512_loadu_ps(s.at + r * s.ld + 16));
  } else {
    const __mmask16 lower = first_lanes(s.depth), upper = first_lanes(s.depth - 16);
    const int64_t rows = transposed ? 16 : min(16, s.across);  // of A: missing rows are never read
    for (int64_t r = 0; r < rows; ++r)
      put_line(out + r * 64, stride, _mm512_maskz_loadu_ps(r < s.across ? lower : 0, s.at + r * s.ld),
               _mm512_maskz_loadu_ps(r < s.across ? upper : 0, s.at + r * s.ld + 16));
  }
  if (transposed)
    for (int64_t part = 0; part < kParts; ++part) transpose(space + part * kTileBytes, to + part * 2 * kTileBytes);
}

// Splits at most 2 tile_rows rows of A, step by step of the depth.
inline void split_rows(const Source& s, int64_t tile_rows, char* to) {
  for (int64_t l = 0; l < s.depth; l += kDeep, to += kStep)
    for (int64_t first = 0; first < s.across; first += tile_rows)
      split_tile(s.part(l, first, tile_rows), false, to + (first > 0 ? kTileBytes : 0));
}

// Spreads `all` pieces of work evenly over `times` calls.
class Pacer {
 public:
  Pacer(int64_t all, int64_t times) : all_(all), times_(times) {}
  template <class Piece>
  void call(const Piece& piece) {
    for (credit_ += all_; credit_ >= times_; credit_ -= times_) piece();
  }

 private:
  int64_t all_, times_, credit_ = 0;
};

// Splits a panel little by little while another one is multiplied, step by step of the depth, into tiles whose rows run
// along the depth if `rows_are_deep`.
class Bf16x3Splitter {
 public:
  Bf16x3Splitter(const Source& source, char* to, bool rows_are_deep)
      : source_(source), to_(to), rows_are_deep_(rows_are_deep) {
    left_ = count_pieces(source.depth, kDeep) * kUnits;
  }

  // Splits everything in `times` calls of split_some().
  void spread_over(int64_t times) { pacer_ = {left_, times}; }
  void split_some() {
    pacer_.call([this] {
      if (left_ > 0) split_next();
    });
  }
  void split_all() {
    while (left_ > 0) split_next();
  }

 private:
  static constexpr int64_t kUnits = 4, kPairs = 16 / kUnits;  // units of a step: kPairs pairs of rows, or half a tile

  [[gnu::noinline]] void split_next() {
    --left_;
    const int64_t l = step_ * kDeep;
    char* const to = to_ + step_ * kStep;
    const bool whole = l + kDeep <= source_.depth && source_.across >= kAcross;
    if (whole && source_.deep_rows && rows_are_deep_) {
      const float *even = source_.at + (l + unit_ * kPairs) * source_.ld, *odd = even + 16 * source_.ld;
#pragma GCC unroll 8
      for (int64_t i = 0; i < kPairs; ++i)
        for (int64_t tile = 0; tile < 2; ++tile)
          put_line(to + tile * kTileBytes + (unit_ * kPairs + i) * 64, 2 * kTileBytes,
                   _mm512_loadu_ps(even + i * source_.ld + tile * 16),
                   _mm512_loadu_ps(odd + i * source_.ld + tile * 16));
    } else if (whole && !source_.deep_rows && !rows_are_deep_) {
      constexpr int64_t kRows = kAcross / kUnits;
      const float* row = source_.at + unit_ * kRows * source_.ld + l;
      char* line = to + unit_ / 2 * kTileBytes + unit_ % 2 * kRows * 64;
#pragma GCC unroll 8
      for (int64_t i = 0; i < kRows; ++i)
        put_line(line + i * 64, 2 * kTileBytes, _mm512_loadu_ps(row + i * source_.ld),
                 _mm512_loadu_ps(row + i * source_.ld + 16));
    } else if (unit_ % 2 == 0 && unit_ / 2 * 16 < source_.across) {
      split_tile(source_.part(l, unit_ / 2 * 16, 16), rows_are_deep_, to + unit_ / 2 * kTileBytes);
    }
    if (++unit_ == kUnits) unit_ = 0, ++step_;
  }

  Source source_;
  char* to_;
  bool rows_are_deep_;
  int64_t left_ = 0, step_ = 0, unit_ = 0;
  Pacer pacer_{0, 1};
};

}  // namespace
}  // namespace sparsight::cpu
