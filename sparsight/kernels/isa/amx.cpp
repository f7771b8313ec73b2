// The amx level: GEMMs with weights packed as tiles, see gemm/amx.h. (Plain weights: gemm/amx_fp32.cpp.) Compiled
// with its own flags: see kernels/sources.cmake.
#include "sparsight/kernels/gemm/amx.h"

#include <immintrin.h>

namespace sparsight::cpu {
namespace {

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

constexpr int64_t kSumsLd = kTilePanelColumns;  // sums of a block: 32 rows of tiles, 32 columns, fp32 or int32
constexpr int64_t kSumsRow = kSumsLd * 4;       // bytes

// sums = the rows of one or two tiles times a panel. upcoming: prefetch target, as many bytes as the panel has.
template <bool kInt8, bool kTwo>
inline void multiply(const char* a, const char* b, int64_t steps, const char* upcoming, float* sums) {
  compiler_barrier();
  _tile_zero(0);
  _tile_zero(1);
  if constexpr (kTwo) {
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t step = 0; step < steps; ++step) {
    _tile_loadd(4, a, 64);
    _tile_loadd(6, b, 64);
    if (upcoming) {
#pragma GCC unroll 32
      for (int64_t byte = 0; byte < kStepBytes; byte += 64) _mm_prefetch(upcoming + byte, _MM_HINT_T1);
      upcoming += kStepBytes;
    }
    if constexpr (kInt8)
      _tile_dpbssd(0, 4, 6);
    else
      _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + kTileBytes, 64);
    if constexpr (kInt8)
      _tile_dpbssd(1, 4, 7);
    else
      _tile_dpbf16ps(1, 4, 7);
    if constexpr (kTwo) {
      _tile_loadd(5, a + kTileBytes, 64);
      if constexpr (kInt8) {
        _tile_dpbssd(2, 5, 6);
        _tile_dpbssd(3, 5, 7);
      } else {
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
      }
    }
    a += kTwo ? 2 * kTileBytes : kTileBytes;
    b += kStepBytes;
  }
  _tile_stored(0, sums, kSumsRow);
  _tile_stored(1, sums + 16, kSumsRow);
  if constexpr (kTwo) {
    _tile_stored(2, sums + kTileRows * kSumsLd, kSumsRow);
    _tile_stored(3, sums + kTileRows * kSumsLd + 16, kSumsRow);
  }
}

// 16 columns of a row of C from the sums of h and l: 256 h + l, scaled, plus `start`.
inline __m512 joined_int8_parts(const float* sums, __m512 row_scale, __m512 scale, __m512 start) {
  const __m512 high = _mm512_cvtepi32_ps(_mm512_load_si512(sums));
  const __m512 low = _mm512_cvtepi32_ps(_mm512_load_si512(sums + kTileRows * kSumsLd));
  const __m512 sum = _mm512_fmadd_ps(high, _mm512_set1_ps(256.0f), low);
  return _mm512_fmadd_ps(_mm512_mul_ps(sum, row_scale), scale, start);
}

// Multiplies all blocks of rows with all panels, and calls finish(block, first row, rows, first column, sums) for each.
template <class Finish>
inline void for_blocks(const TileGemm& p, const Finish& finish) {
  alignas(64) float sums[2 * kTileRows * kSumsLd];
  const int64_t steps = p.a.steps(), panels = p.columns / kTilePanelColumns, blocks = p.a.blocks();
  const bool int8 = p.a.type == WeightType::int8;
  for (int64_t panel = 0; panel < panels; ++panel) {
    const char* const b = p.b + panel * steps * kStepBytes;
    for (int64_t block = 0; block < blocks; ++block) {
      const char* const a = p.a.block(block);
      const char* const upcoming = block > 0 ? nullptr : panel + 1 < panels ? b + steps * kStepBytes : p.prefetch;
      if (int8)
        multiply<true, true>(a, b, steps, upcoming, sums);
      else if (p.a.tiles_in(block) == 2)
        multiply<false, true>(a, b, steps, upcoming, sums);
      else
        multiply<false, false>(a, b, steps, upcoming, sums);
      finish(block, block * p.a.block_rows(), p.a.rows_in(block), panel * kTilePanelColumns, sums);
    }
  }
}

inline __m512 load_or_zero(const float* p) { return p ? _mm512_loadu_ps(p) : _mm512_setzero_ps(); }

// The position of a row of A in its tiles: 64 bytes per step of the depth, `step` bytes from one step to the next.
struct RowPosition {
  char* at;
  int64_t step;
};
inline RowPosition row_position(const TileRows& rows, int64_t number) {
  const int64_t block = number / rows.block_rows(), row = number % rows.block_rows();
  return {rows.block(block) + row * 64, rows.tiles_in(block) * kTileBytes};  // the second tile follows the first
}

void put_bf16_row(const RowPosition& position, const float* x, int64_t columns) {
  for (int64_t c = 0, step = 0; c < columns; c += 32, ++step) {
    const int64_t left = columns - c;
    const __mmask32 mask = left >= 32 ? 0xffffffffu : (1u << left) - 1;
    const __m512 low = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), x + c);
    const __m512 high = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> 16), x + c + 16);
    _mm512_store_si512(position.at + step * position.step, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
  }
}

// Quantises a row. Returns s.
float put_int8_row(const RowPosition& position, const float* x, int64_t columns, int64_t padded) {
  const auto mask_at = [&](int64_t c) {
    const int64_t left = columns - c;
    return static_cast<__mmask16>(left >= 16 ? 0xffff : left > 0 ? (1 << left) - 1 : 0);
  };
  // Compared as integers, magnitudes of floats keep their order, with infinity and NaN above all others.
  __m512i largest = _mm512_setzero_si512();
  const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
  for (int64_t c = 0; c < columns; c += 16)
    largest = _mm512_max_epi32(
        largest, _mm512_and_si512(magnitude, _mm512_castps_si512(_mm512_maskz_loadu_ps(mask_at(c), x + c))));
  const float maximum = _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(_mm512_reduce_max_epi32(largest))));
  constexpr float kSteps = 127 * 256 + 127;
  const __m512 factor = _mm512_set1_ps(maximum > 1e-30f && maximum < __builtin_inff() ? kSteps / maximum : 0.0f);
  for (int64_t c = 0; c < padded; c += 16) {
    const __m512i q = _mm512_cvtps_epi32(_mm512_mul_ps(factor, _mm512_maskz_loadu_ps(mask_at(c), x + c)));
    const __m512i high = _mm512_srai_epi32(_mm512_add_epi32(q, _mm512_set1_epi32(128)), 8);
    const __m512i low = _mm512_sub_epi32(q, _mm512_slli_epi32(high, 8));
    char* const to = position.at + c / 64 * position.step + c % 64;
    _mm_store_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(high));
    _mm_store_si128(reinterpret_cast<__m128i*>(to + kTileBytes), _mm512_cvtepi32_epi8(low));
  }
  return maximum < __builtin_inff() ? maximum / kSteps : __builtin_nanf("");
}

}  // namespace

TileRegisters::TileRegisters(int64_t rows) {
  TileConfig config;
  for (int tile = 0; tile < 6; ++tile) config.rows[tile] = static_cast<uint8_t>(rows);
  asm volatile("sttilecfg %0" : "=m"(before_));
  asm volatile("ldtilecfg %0" ::"m"(config));
}

TileRegisters::~TileRegisters() { asm volatile("ldtilecfg %0" ::"m"(before_)); }  // all zeros: releases the tiles

void put_tile_row(const TileRows& rows, int64_t number, const float* x, int64_t columns) {
  const RowPosition position = row_position(rows, number);
  if (rows.type == WeightType::int8)
    rows.scale[number] = put_int8_row(position, x, columns, rows.columns);
  else
    put_bf16_row(position, x, columns);
}

void tile_gemm(const TileGemm& p, bool accumulate, float* out, int64_t out_ld) {
  const bool int8 = p.a.type == WeightType::int8;
  for_blocks(p, [&](int64_t, int64_t first, int64_t rows, int64_t column, const float* sums) {
    for (int64_t half = 0; half < kTilePanelColumns; half += 16) {
      const int64_t c = column + half;
      const __m512 bias = load_or_zero(p.bias ? p.bias + c : nullptr);
      const __m512 scale = load_or_zero(int8 ? p.scale + c : nullptr);
      for (int64_t i = 0; i < rows; ++i) {
        float* const to = out + (first + i) * out_ld + c;
        const __m512 start = accumulate ? _mm512_loadu_ps(to) : bias;
        const float* const from = sums + i * kSumsLd + half;
        _mm512_storeu_ps(to, int8 ? joined_int8_parts(from, _mm512_set1_ps(p.a.scale[first + i]), scale, start)
                                  : _mm512_add_ps(_mm512_load_ps(from), start));
      }
    }
  });
}

void tile_gemm_activation(const TileGemm& p, Activation activation, const Kernels& kernels, const TileRows& active,
                          float* space) {
  if (p.a.type == WeightType::int8) {
    tile_gemm(p, false, space, p.columns);
    for (int64_t i = 0; i < p.a.count; ++i) {
      float* const row = space + i * p.columns;
      kernels.activate(activation, row, row, nullptr, p.columns);
      put_tile_row(active, i, row, p.columns);
    }
    return;
  }
  for_blocks(p, [&](int64_t, int64_t first, int64_t rows, int64_t column, float* sums) {
    const __m512 low = load_or_zero(p.bias ? p.bias + column : nullptr);
    const __m512 high = load_or_zero(p.bias ? p.bias + column + 16 : nullptr);
    for (int64_t i = 0; i < rows; ++i) {
      float* const row = sums + i * kSumsLd;
      _mm512_store_ps(row, _mm512_add_ps(_mm512_load_ps(row), low));
      _mm512_store_ps(row + 16, _mm512_add_ps(_mm512_load_ps(row + 16), high));
    }
    kernels.activate(activation, sums, sums, nullptr, rows * kSumsLd);
    const RowPosition position = row_position(active, first);  // of the first row; the others follow every 64 bytes
    char* const to = position.at + column / kTilePanelColumns * position.step;
    for (int64_t i = 0; i < rows; ++i)
      _mm512_store_si512(to + i * 64,
                         reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(_mm512_load_ps(sums + i * kSumsLd + 16),
                                                                       _mm512_load_ps(sums + i * kSumsLd))));
  });
}

}  // namespace sparsight::cpu
