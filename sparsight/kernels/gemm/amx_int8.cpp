// The int8 GEMMs of the amx level: rows of A are quantised once per block of the depth, as at other levels
// (elementwise/integers_inl.h), and are read by the tile registers as they lie there (amx_tiles_inl.h). Compiled with
// its own flags: see kernels/sources.cmake.
#include "sparsight/kernels/gemm/amx_tiles_inl.h"

#include "sparsight/kernels/isa/vectors_avx512_inl.h"

namespace sparsight::cpu {
namespace {

// One vector of each row of C, of `some` columns, from the sums.
inline void scale_column(const Tile& t, int rows, const int32_t* sums, int64_t column, int some) {
  const auto load = [&](const float* p) { return load_some<Vec>(p + column, some); };
  const __m512 scale = load(t.scale), bias = t.start == Start::bias ? load(t.bias) : Vec::set1(0.0F);
  const auto each_row = [&](const auto& start, const auto& store) {
    float* to = t.c + column;
#pragma GCC unroll 4
    for (int i = 0; i < rows; ++i, to += t.c_ld)
      store(to, scaled<Vec>(_mm512_load_si512(sums + i * kAcross), Vec::set1(t.row_scale[i]), scale, start(to)));
  };
  const auto each = [&](const auto& store) {
    if (t.start == Start::c)
      each_row([&](const float* to) { return load_some<Vec>(to, some); }, store);
    else
      each_row([&](const float*) { return bias; }, store);
  };
  if (some < Vec::lanes)
    each([&](float* to, __m512 c) { Vec::store_part(to, c, some); });
  else if (t.stream)
    each(Vec::stream);
  else
    each(Vec::store);
}

template <bool kTall, bool kWide>
void run_tiles(const Tile& t, int rows) {
  alignas(64) int32_t sums[2 * kTileRows * kAcross];
  compiler_barrier();
  SumTiles<kTall, kWide>::zero();
  multiply_tiles<Int8Numbers, kTall, kWide>(t);
  SumTiles<kTall, kWide>::store(sums, kAcross);
  for (int64_t column = 0; column < t.columns; column += kTileColumns)
    scale_column(t, rows, sums + column, column, static_cast<int>(min(kTileColumns, t.columns - column)));
}

struct AmxVec : Vec {
  static constexpr int panel_rows = 2 * kTileRows;
  static constexpr int panel_row_unit = kTileRows;
  static constexpr int panel_vectors(int) { return 2; }
  static int32_t start_of_sums(const int8_t*, int64_t) { return 0; }  // tiles multiply signed numbers

  template <int kMr, int kNv>
  static void integer_tile(const Tile& t) {
    run_tiles<(kMr > kTileRows), (kNv > 1)>(t, kMr);
  }
};

}  // namespace

void amx_int8_product(const Gemm& p, float* space) {
  if (p.m == 0 || p.n == 0) return;
  const TileRegisters registers;
  in_row_parts(p, [space](const Gemm& part) { gemm_panels<AmxVec, int8_t>(part, space); });
  if (p.stream) Vec::fence();
}

}  // namespace sparsight::cpu
