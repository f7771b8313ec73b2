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

constexpr int64_t kSumsLd = kTilePanelColumns;  // sums of a block: 32 rows of tiles, 32 columns
constexpr int64_t kSumsRow = kSumsLd * 4;       // bytes

// sums = the rows of one or two tiles times a panel. upcoming: prefetch target, as many bytes as the panel has.
template <bool kTwo>
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
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + kTileBytes, 64);
    _tile_dpbf16ps(1, 4, 7);
    if constexpr (kTwo) {
      _tile_loadd(5, a + kTileBytes, 64);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
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

// Multiplies all blocks of rows with all panels, and calls finish(block, first row, rows, first column, sums) for each.
template <class Finish>
inline void for_blocks(const TileGemm& p, const Finish& finish) {
  alignas(64) float sums[2 * kTileRows * kSumsLd];
  const int64_t steps = p.a.steps(), panels = p.columns / kTilePanelColumns, blocks = p.a.blocks();
  for (int64_t panel = 0; panel < panels; ++panel) {
    const char* const b = p.b + panel * steps * kStepBytes;
    for (int64_t block = 0; block < blocks; ++block) {
      const char* const a = p.a.block(block);
      const char* const upcoming = block > 0 ? nullptr : panel + 1 < panels ? b + steps * kStepBytes : p.prefetch;
      if (p.a.tiles_in(block) == 2)
        multiply<true>(a, b, steps, upcoming, sums);
      else
        multiply<false>(a, b, steps, upcoming, sums);
      finish(block, block * TileRows::block_rows, p.a.rows_in(block), panel * kTilePanelColumns, sums);
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
  const int64_t block = number / TileRows::block_rows, row = number % TileRows::block_rows;
  return {rows.block(block) + row * 64, rows.tiles_in(block) * kTileBytes};  // the second tile follows the first
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
  for (int64_t c = 0, step = 0; c < columns; c += kTileDeep, ++step) {
    const int64_t left = columns - c;
    const __mmask32 mask = left >= 32 ? 0xffffffffu : (1u << left) - 1;
    const __m512 low = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), x + c);
    const __m512 high = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> 16), x + c + 16);
    _mm512_store_si512(position.at + step * position.step, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
  }
}

void tile_gemm(const TileGemm& p, bool accumulate, float* out, int64_t out_ld) {
  for_blocks(p, [&](int64_t, int64_t first, int64_t rows, int64_t column, const float* sums) {
    for (int64_t half = 0; half < kTilePanelColumns; half += 16) {
      const int64_t c = column + half;
      const __m512 bias = load_or_zero(p.bias ? p.bias + c : nullptr);
      for (int64_t i = 0; i < rows; ++i) {
        float* const to = out + (first + i) * out_ld + c;
        const __m512 start = accumulate ? _mm512_loadu_ps(to) : bias;
        _mm512_storeu_ps(to, _mm512_add_ps(_mm512_load_ps(sums + i * kSumsLd + half), start));
      }
    }
  });
}

void tile_gemm_activation(const TileGemm& p, Activation activation, const Kernels& kernels, const TileRows& active) {
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
