// Products of rows in fewer bits with panels of packed weights by the matrix instructions of 64-bit Arm, which add to 2
// x 2 sums the products of two rows of A with two columns of B, 8 bytes of the depth (four bf16 or eight int8) each.
// Rows of A are read as they lie there (Tile::rounded). A panel has 4 bytes of the depth of each column, and then the
// next 4: these two vectors of four columns, interleaved, are two operands. Included by isa/neon_bf16.cpp and
// isa/neon_i8mm.cpp only.
#pragma once

#include <arm_neon.h>

#include "sparsight/kernels/gemm/tile_inl.h"

namespace sparsight::cpu {
namespace {

// The first (0) or second halves of two vectors: row 0 or 1 of two neighbouring 2 x 2 sums, which they make from two
// rows, too.
template <class Sum>
[[gnu::always_inline]] inline Sum halves(int which, Sum a, Sum b) {
  const auto x = reinterpret_cast<uint64x2_t>(a), y = reinterpret_cast<uint64x2_t>(b);
  return reinterpret_cast<Sum>(which == 0 ? vzip1q_u64(x, y) : vzip2q_u64(x, y));
}

// Bytes as words of 32 bits. (Those of 8 bits may be read whatever was written.)
inline uint32x4_t load_words(const uint8_t* p) { return vreinterpretq_u32_u8(vld1q_u8(p)); }
inline uint32x4_t two_rows(const uint8_t* first, const uint8_t* second) {
  return vreinterpretq_u32_u8(vcombine_u8(vld1_u8(first), vld1_u8(second)));
}

// sum[p][2 q] and sum[p][2 q + 1]: of rows 2 p and 2 p + 1, and of the left and right two of the four columns 4 q ...
// Numbers: their type and Sum, add(sums, rows, columns), and nothing(), columns that change no sum.
template <class Numbers, int kMr, int kQuads>
[[gnu::always_inline]] inline void multiply_blocks(const Tile& t,
                                                   typename Numbers::Sum (&sum)[(kMr + 1) / 2][2 * kQuads]) {
  constexpr int kPairs = (kMr + 1) / 2, kQuadsOfPanel = kPanelColumns / 4;
  constexpr int64_t kTogether = rows_together(Numbers::type), kGroup = 4 * kPanelColumns, kRow = 2 * kBlock;  // bytes
  const auto* a = reinterpret_cast<const uint8_t*>(t.rounded);
  const auto* b = static_cast<const uint8_t*>(t.b);
  const int64_t panel = t.b_panel * element_bytes(Numbers::type);
  const auto add = [&](const auto& load_second) __attribute__((always_inline)) {
    uint32x4_t rows[kPairs];
#pragma GCC unroll 32
    for (int p = 0; p < kPairs; ++p)  // the last row may lack a second one: it is its own, whose sums nobody reads
      rows[p] = two_rows(a + 2 * p * kRow, a + min(2 * p + 1, kMr - 1) * kRow);
#pragma GCC unroll 32
    for (int q = 0; q < kQuads; ++q) {
      const uint8_t* const at = b + (q / kQuadsOfPanel * panel + q % kQuadsOfPanel * 16);
      const uint32x4_t first = load_words(at), second = load_second(at + kGroup);
      const uint32x4_t left = vzip1q_u32(first, second), right = vzip2q_u32(first, second);
#pragma GCC unroll 32
      for (int p = 0; p < kPairs; ++p) {
        sum[p][2 * q] = Numbers::add(sum[p][2 * q], rows[p], left);
        sum[p][2 * q + 1] = Numbers::add(sum[p][2 * q + 1], rows[p], right);
      }
    }
    a += 8;
    b += 2 * kGroup;
  };
  const int64_t groups = (t.depth + kTogether - 1) / kTogether;
  fetching_steps<2>(
      t, groups / 2, [&]() __attribute__((always_inline)) { add(load_words); });
  // The panel may end here. Rows of A go on with zeros.
  if (groups % 2 != 0) add([](const uint8_t*) __attribute__((always_inline)) { return Numbers::nothing(); });
}

}  // namespace
}  // namespace sparsight::cpu
