// Vectors of 16 floats that multiply pairs of bf16, for the avx512_bf16 and amx levels. Included by their source files
// only.
#pragma once

#include "sparsight/kernels/gemm/bf16_tile_inl.h"
#include "sparsight/kernels/isa/vectors_avx512_inl.h"

namespace sparsight::cpu {
namespace {

struct Bf16Vec : Vec {
  template <int kMr, int kNv>
  static constexpr TileFunction bf16_tile = run_bf16_tile<Bf16Vec, kMr, kNv>;

  // Inline assembly for the same reason as in add_quads() of integers.
  static T add_bf16_pairs(T sum, Words a, Words b) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
  }
  static Words load_bf16_pairs(const uint16_t* p, int) { return _mm512_loadu_si512(p); }
  static void store_pairs(int16_t* p, Words x) { _mm512_storeu_si512(p, x); }
  // Rounded to bf16: low in the first 16 numbers, high in the last.
  static Words joined(T low, T high) { return reinterpret_cast<Words>(_mm512_cvtne2ps_pbh(high, low)); }
  // Pair i is even[i], odd[i].
  static Words interleaved(T even, T odd) {
    alignas(64) static constexpr int16_t kOrder[] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                     8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    return _mm512_permutexvar_epi16(_mm512_load_si512(kOrder), joined(even, odd));
  }
};

}  // namespace
}  // namespace sparsight::cpu
