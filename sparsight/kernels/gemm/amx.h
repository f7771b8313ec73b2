// GEMMs of rows with packed weights on the tile registers of AMX. First those with weights packed as tiles of bf16:
// rows are rounded to bf16, sums are fp32. Layouts: packed_layout.h; diagram: docs/kernels.md, "Packed tiles for AMX".
// Raw pointers, no torch: see kernels.h.
#pragma once

#include <cstdint>

#include "sparsight/kernels/pack/packed_layout.h"

namespace sparsight::cpu {

constexpr int64_t kTileDeep = 32;  // numbers of bf16 in a row of a tile

// The compiler does not know what memory tile instructions read: stores before them must be done.
[[gnu::always_inline]] inline void compiler_barrier() { asm volatile("" ::: "memory"); }

// Configures the tile registers of this thread while it lives: 0 to 3 hold sums, 4 and 5 rows of the left operand, 6
// and 7 weights; 0 to 5 have `rows` rows. The destructor restores the previous configuration, which libraries that
// remember theirs rely on (the contents are lost).
class TileRegisters {
 public:
  explicit TileRegisters(int64_t rows = kTileRows);
  ~TileRegisters();
  TileRegisters(const TileRegisters&) = delete;
  TileRegisters& operator=(const TileRegisters&) = delete;

 private:
  unsigned char before_[64];
};

// Rows of the left operand A as tiles, in blocks of 32 rows: per step of the depth a block has one or two tiles of 16
// rows each. Missing rows of a tile are never read.
struct TileRows {
  static constexpr int64_t block_rows = 2 * kTileRows;
  int64_t count = 0, columns = 0;  // columns: padded
  char* tiles = nullptr;           // bytes()

  // Inlined everywhere, so that no file shares a copy that was compiled with AMX flags.
  [[gnu::always_inline]] int64_t blocks() const { return (count + block_rows - 1) / block_rows; }
  [[gnu::always_inline]] int64_t rows_in(int64_t block) const {
    const int64_t left = count - block * block_rows;
    return left < block_rows ? left : block_rows;
  }
  [[gnu::always_inline]] int64_t tiles_in(int64_t block) const { return rows_in(block) <= kTileRows ? 1 : 2; }
  [[gnu::always_inline]] int64_t steps() const { return columns / kTileDeep; }
  [[gnu::always_inline]] char* block(int64_t number) const { return tiles + number * steps() * 2 * kTileBytes; }
  [[gnu::always_inline]] int64_t bytes() const { return blocks() * steps() * 2 * kTileBytes; }
};

// Stores x [columns], padded with zeros, as row `number` of `rows`.
void put_tile_row(const TileRows& rows, int64_t number, const float* x, int64_t columns);

// C [count,columns] = A B, with B in panels of tiles.
struct TileGemm {
  TileRows a;
  const char* b = nullptr;
  int64_t columns = 0;             // padded
  const float* bias = nullptr;     // [columns] or null
  const char* prefetch = nullptr;  // what is read after B; may be null
};

// out: [count,out_ld], out_ld >= columns: C + bias, or out + C if `accumulate`.
void tile_gemm(const TileGemm& product, bool accumulate, float* out, int64_t out_ld);

// Stores act(C + bias) in `active`, the rows of the next product, which have as many columns.
void tile_gemm_activation(const TileGemm& product, Activation activation, const Kernels& kernels,
                          const TileRows& active);

// Products of rows rounded to bf16 with weights in panels of bf16, or with a plain B that is rounded too
// (Gemm::bf16_products); in gemm/amx_bf16.cpp. space: scratch of kAmxBf16Floats.
void amx_bf16_product(const Gemm& p, float* space);
extern const int64_t kAmxBf16Floats;

// Products of quantised rows with weights in panels of int8; in gemm/amx_int8.cpp. space: as much scratch.
void amx_int8_product(const Gemm& p, float* space);

}  // namespace sparsight::cpu
