// Vectors of four floats whose words are four int8, for the levels neon_dotprod and neon_i8mm. Included by their source
// files only.
#pragma once

#include "sparsight/kernels/isa/vectors_neon_inl.h"

namespace sparsight::cpu {
namespace {

struct QuadVec : Vec {
  using Words = int8x16_t;
  static Words set_word(const int16_t* p) { return vreinterpretq_s8_s16(Vec::set_word(p)); }
  static constexpr int quad_words = 1;
  using Quantised = int8_t;
  static int32_t start_of_sums(const Quantised*, int64_t) { return 0; }
  static Words load_quads(const int8_t* p, int) { return vld1q_s8(p); }
  static Ints add_quads(Ints sum, Words a, Words b) { return vdotq_s32(sum, a, b); }
  static constexpr int quantised_together = 4;
  static void store_quantised(int8_t* p, const T (&x)[4]) {
    const auto pair = [&](int i) {
      return vqmovn_s16(vcombine_s16(vqmovn_s32(vcvtnq_s32_f32(x[i])), vqmovn_s32(vcvtnq_s32_f32(x[i + 1]))));
    };
    vst1q_s8(p, vcombine_s8(pair(0), pair(2)));
  }
};

}  // namespace
}  // namespace sparsight::cpu
