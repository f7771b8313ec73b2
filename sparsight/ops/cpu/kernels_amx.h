// Gemms of rows with packed weights on the tile registers of AMX. Weights lie as packed_layout.h says. bf16: rows are
// rounded to bf16, sums are fp32. int8: a row x is s (256 h + l) with two int8 quantised h, l of each element and one
// fp32 s (so within max|x| / 65278 of itself), and both quantised are multiplied with the stored weights in int32,
// exactly: weights are used as they are stored, and nothing has to be widened. Plain pointers, no torch: see kernels.h.
#pragma once

#include <cstdint>

#include "sparsight/ops/cpu/packed_layout.h"

namespace sparsight::cpu {

// The instructions on tiles are opaque to the compiler: what they read must be in memory before.
[[gnu::always_inline]] inline void compiler_barrier() { asm volatile("" ::: "memory"); }

// While it lives the tile registers of this thread are ours: 0 to 3 hold sums, 4 and 5 rows of the left operand, 6 and
// 7 weights; of 0 to 5 `rows` rows are used. Afterwards they are configured as before, which libraries that remember
// their configuration rely on (their contents are lost).
class TileRegisters {
 public:
  explicit TileRegisters(int64_t rows = kTileRows);
  ~TileRegisters();
  TileRegisters(const TileRegisters&) = delete;
  TileRegisters& operator=(const TileRegisters&) = delete;

 private:
  unsigned char before_[64];
};

// Rows as the left operand: blocks of 32 rows (bf16) or of 16 rows with two quantised (int8); of each block for each
// `depth` columns one or two tiles: 16 rows each, or the high quantised and the low ones. Rows of a tile that are not
// there are not read by anyone.
struct TileRows {
  WeightType type;
  int64_t count = 0, columns = 0;  // columns: padded
  char* tiles = nullptr;           // bytes()
  float* scale = nullptr;          // [count], int8: s

  // Inlined in every file, so that none of them is shared with the file that has special flags.
  [[gnu::always_inline]] int64_t block_rows() const { return type == WeightType::bf16 ? 2 * kTileRows : kTileRows; }
  [[gnu::always_inline]] int64_t blocks() const { return (count + block_rows() - 1) / block_rows(); }
  [[gnu::always_inline]] int64_t rows_of(int64_t block) const {
    const int64_t left = count - block * block_rows();
    return left < block_rows() ? left : block_rows();
  }
  [[gnu::always_inline]] int64_t tiles_of(int64_t block) const {
    return type == WeightType::bf16 && rows_of(block) <= kTileRows ? 1 : 2;
  }
  [[gnu::always_inline]] int64_t steps() const { return columns * (type == WeightType::bf16 ? 2 : 1) / 64; }
  [[gnu::always_inline]] char* block(int64_t number) const { return tiles + number * steps() * 2 * kTileBytes; }
  [[gnu::always_inline]] int64_t bytes() const { return blocks() * steps() * 2 * kTileBytes; }
};

// Makes row `number` of `rows` from x [columns], with zeros after them. int8: an x that is not finite makes s NaN.
void put_tile_row(const TileRows& rows, int64_t number, const float* x, int64_t columns);

// C [count,columns] = A B, of a matrix B of panels.
struct TileGemm {
  TileRows a;
  const char* b = nullptr;
  int64_t columns = 0;           // padded
  const float* scale = nullptr;  // [columns], int8: of the columns of B
  const float* bias = nullptr;   // [columns] or null
  const char* next = nullptr;    // what is read after B, to be fetched early; may be null
};

// out: [count,out_ld], out_ld >= columns: C + bias, or out + C if `accumulate`.
void tile_gemm(const TileGemm& product, bool accumulate, float* out, int64_t out_ld);

// act(C + bias) as the rows of the next product: `active` has as many columns. space: [count,columns], for int8 only.
void tile_gemm_activation(const TileGemm& product, Activation activation, const Kernels& kernels,
                          const TileRows& active, float* space);

}  // namespace sparsight::cpu
