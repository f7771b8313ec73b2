// Products of rows in fewer bits with panels of packed weights on the tile registers of AMX: rows of A at a stride of
// kBlock numbers of 16 bits (Tile::rounded), and panels, of which 16 groups of rows are a tile as they lie there. Two
// by two tiles of sums, or fewer: rows 0 to 15 and 16 to 31, columns 0 to 15 and 16 to 31. Included by
// gemm/amx_bf16.cpp and gemm/amx_int8.cpp only.
#pragma once

#include <immintrin.h>

#include <cstring>

#include "sparsight/kernels/gemm/amx.h"

#include "sparsight/kernels/gemm/panels_inl.h"

namespace sparsight::cpu {
namespace {

constexpr int64_t kRowBytes = kBlock * 2;                     // of rounded rows of A
constexpr int kTileColumns = 16, kAcross = 2 * kTileColumns;  // columns of a tile, and of two
static_assert(kPanelColumns == kTileColumns);

// Tiles 0 to 3.
template <bool kTall, bool kWide>
struct SumTiles {
  static void zero() {
    _tile_zero(0);
    if constexpr (kWide) _tile_zero(1);
    if constexpr (kTall) _tile_zero(2);
    if constexpr (kTall && kWide) _tile_zero(3);
  }
  // ld: of the rows; below: from the first to row 16.
  static void load(const float* from, int64_t ld, int64_t below) {
    compiler_barrier();
    _tile_loadd(0, from, ld * 4);
    if constexpr (kWide) _tile_loadd(1, from + kTileColumns, ld * 4);
    if constexpr (kTall) _tile_loadd(2, from + below, ld * 4);
    if constexpr (kTall && kWide) _tile_loadd(3, from + below + kTileColumns, ld * 4);
  }
  static void store(void* to, int64_t ld) {
    auto* const first = static_cast<char*>(to);
    char* const below = first + kTileRows * ld * 4;
    _tile_stored(0, first, ld * 4);
    if constexpr (kWide) _tile_stored(1, first + kTileColumns * 4, ld * 4);
    if constexpr (kTall) _tile_stored(2, below, ld * 4);
    if constexpr (kTall && kWide) _tile_stored(3, below + kTileColumns * 4, ld * 4);
    compiler_barrier();
  }
};

// What is multiplied: tiles 4 and 5 of A by tiles 6 and 7 of B.
struct Bf16Numbers {
  static constexpr WeightType type = WeightType::bf16;
  static void add_0() { _tile_dpbf16ps(0, 4, 6); }
  static void add_1() { _tile_dpbf16ps(1, 4, 7); }
  static void add_2() { _tile_dpbf16ps(2, 5, 6); }
  static void add_3() { _tile_dpbf16ps(3, 5, 7); }
};
struct Int8Numbers {
  static constexpr WeightType type = WeightType::int8;
  static void add_0() { _tile_dpbssd(0, 4, 6); }
  static void add_1() { _tile_dpbssd(1, 4, 7); }
  static void add_2() { _tile_dpbssd(2, 5, 6); }
  static void add_3() { _tile_dpbssd(3, 5, 7); }
};

// Where tiles 4 and 5 (16 rows of A each) and 6 and 7 (16 columns of B) are read, for a tile of the depth.
template <class Numbers, bool kTall, bool kWide>
struct Operands {
  const char *a, *b, *right;

  void advance() { a += 64, b += kTileBytes, right += kTileBytes; }
  void load() const {
    _tile_loadd(4, a, kRowBytes);
    _tile_loadd(6, b, 64);
    if constexpr (kWide) _tile_loadd(7, right, 64);
    if constexpr (kTall) _tile_loadd(5, a + kTileRows * kRowBytes, kRowBytes);
  }
  // C += what is loaded.
  static void multiply() {
    Numbers::add_0();
    if constexpr (kWide) Numbers::add_1();
    if constexpr (kTall) Numbers::add_2();
    if constexpr (kTall && kWide) Numbers::add_3();
  }
  // C += what is loaded, then what is here is; each tile is loaded as soon as its last product has been issued.
  void multiply_and_load() const {
    Numbers::add_0();
    if constexpr (kWide) Numbers::add_1();
    _tile_loadd(4, a, kRowBytes);
    if constexpr (kTall) Numbers::add_2();
    _tile_loadd(6, b, 64);
    if constexpr (kTall && kWide) Numbers::add_3();
    if constexpr (kWide) _tile_loadd(7, right, 64);
    if constexpr (kTall) _tile_loadd(5, a + kTileRows * kRowBytes, kRowBytes);
  }
};

// The last groups of rows of a panel as a tile.
inline void copy_rest(const char* panel, int64_t groups, char* tile) {
  const auto bytes = static_cast<size_t>(groups * 64);
  std::memcpy(tile, panel, bytes);
  std::memset(tile + bytes, 0, static_cast<size_t>(kTileBytes) - bytes);
}

// Adds the products of a tile to tiles 0 to 3.
template <class Numbers, bool kTall, bool kWide>
void multiply_tiles(const Tile& t) {
  constexpr int64_t kTogether = rows_together(Numbers::type);
  const auto* const b = static_cast<const char*>(t.b);
  const int64_t groups = (t.depth + kTogether - 1) / kTogether, steps = groups / kTileRows, rest = groups % kTileRows;
  Operands<Numbers, kTall, kWide> at{reinterpret_cast<const char*>(t.rounded), b,
                                     b + t.b_panel * element_bytes(Numbers::type)};
  if (steps > 0) {
    at.load();
    for (int64_t step = 1, credit = kTileRows; step < steps; ++step, credit += kTileRows) {
      at.advance();
      at.multiply_and_load();
      for (; credit >= t.every; credit -= t.every) t.fetch->next<Fetch::kNotFirst>();
    }
    at.multiply();
    at.advance();
  }
  if (rest > 0) {
    alignas(64) char copies[2 * kTileBytes];
    copy_rest(at.b, rest, copies);
    if constexpr (kWide) copy_rest(at.right, rest, copies + kTileBytes);
    compiler_barrier();
    at.b = copies, at.right = copies + kTileBytes;
    at.load();
    at.multiply();
  }
}

}  // namespace
}  // namespace sparsight::cpu
