// Vectors of four floats of 64-bit Arm, for the levels neon, neon_dotprod, neon_bf16 and neon_i8mm. Included by their
// source files only.
#pragma once

#include <arm_neon.h>

#include <cstdint>
#include <cstring>

#include "sparsight/kernels/gemm/tile_inl.h"

namespace sparsight::cpu {
namespace {

struct Vec {
  using T = float32x4_t;
  static constexpr int lanes = 4;
  // 24 of the 32 registers hold sums.
  static constexpr TileShape tile(bool) { return {6, 4}; }
  static constexpr TileShape attention_tile() { return {6, 4}; }  // attention/attention_inl.h
  // Small-M (gemm/small_m_inl.h); the numbers of rows are those of avx2:
  static constexpr int64_t max_small_m = 44;     // rows up to which it is chosen,
  static constexpr int64_t max_dots = 20;        // and with B transposed
  static constexpr int small_m_vectors = 6;      // vectors in registers of each of four rows of B
  static constexpr int64_t small_m_piece = 384;  // bytes per prefetch
  // Columns of a dot-product tile (B transposed) of one to four rows: up to 24 sums, each a vector.
  static constexpr int dots_across(int64_t rows) {
    constexpr int columns[] = {12, 8, 6, 6};
    return columns[rows - 1];
  }
  // Tiles with packed weights in panels (of four vectors):
  static constexpr int panel_rows = 6;
  static constexpr int panel_row_unit = 1;
  static constexpr int panel_vectors(int m) { return m == 1 ? 16 : m <= 3 ? 8 : 4; }

  static T load(const float* p) { return vld1q_f32(p); }
  static T load(const uint16_t* p) { return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16)); }
  // The first and second numbers of pairs of bf16.
  static T load_first(const uint16_t* p) { return vreinterpretq_f32_u32(vshlq_n_u32(load_bits(p), 16)); }
  static T load_second(const uint16_t* p) {
    return vreinterpretq_f32_u32(vandq_u32(load_bits(p), vdupq_n_u32(0xffff0000)));
  }
  static T load_part(const float* p, int n) {
    T x = vdupq_n_f32(0);
    if (n >= 2) x = vcombine_f32(vld1_f32(p), vdup_n_f32(0));
    if (n == 3) x = vld1q_lane_f32(p + 2, x, 2);
    if (n == 1) x = vld1q_lane_f32(p, x, 0);
    return x;
  }
  static void store(float* p, T x) { vst1q_f32(p, x); }
  static void store_part(float* p, T x, int n) {
    if (n >= 2) vst1_f32(p, vget_low_f32(x));
    if (n == 3) vst1q_lane_f32(p + 2, x, 2);
    if (n == 1) vst1q_lane_f32(p, x, 0);
  }
  static void stream(float* p, T x) { store(p, x); }
  static void fence() {}
  static T set1(float x) { return vdupq_n_f32(x); }

  // Words of 32 bits are pairs of 16-bit integers: numbers 0 and 2, or 1 and 3, of four. And sums of their products.
  using Words = int16x8_t;
  using Ints = int32x4_t;
  static Words set_word(const int16_t* p) {
    int32_t word;
    std::memcpy(&word, p, sizeof word);
    return vreinterpretq_s16_s32(vdupq_n_s32(word));
  }
  static constexpr int quad_words = 2;
  using Quantised = int16_t;
  static int32_t start_of_sums(const Quantised*, int64_t) { return 0; }
  static Words load_quads(const int8_t* p, int word) {
    const int16x8_t quads = vreinterpretq_s16_s8(vld1q_s8(p));
    return vshrq_n_s16(word == 0 ? vshlq_n_s16(quads, 8) : quads, 8);
  }
  // Products of two numbers of 8 bits fit into 16.
  static Ints add_quads(Ints sum, Words a, Words b) { return vpadalq_s16(sum, vmulq_s16(a, b)); }
  static Ints no_sum() { return vdupq_n_s32(0); }
  static Ints set_int(int32_t x) { return vdupq_n_s32(x); }
  static T to_float(Ints x) { return vcvtq_f32_s32(x); }
  static Ints magnitude(T x) { return vreinterpretq_s32_f32(vabsq_f32(x)); }
  static Ints larger(Ints a, Ints b) { return vmaxq_s32(a, b); }
  static int32_t largest(Ints x) { return vmaxvq_s32(x); }
  static constexpr int quantised_together = 1;
  static void store_quantised(int16_t* p, const T (&x)[1]) {
    const int16x4_t whole = vqmovn_s32(vcvtnq_s32_f32(x[0]));
    const int16x4_t even = vuzp1_s16(whole, whole), odd = vuzp2_s16(whole, whole);
    vst1_s16(p, vreinterpret_s16_s32(vzip1_s32(vreinterpret_s32_s16(even), vreinterpret_s32_s16(odd))));
  }

  static T add(T a, T b) { return vaddq_f32(a, b); }
  static T mul(T a, T b) { return vmulq_f32(a, b); }
  static T fma(T a, T b, T c) { return vfmaq_f32(c, a, b); }
  // If either operand is NaN, or both are zeros, min and max return the second one, as on x86: vminq_f32() does not.
  static T min(T a, T b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
  static T max(T a, T b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
  static T round(T x) { return vrndnq_f32(x); }
  static T power_of_two(T n) {
    return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vcvtnq_s32_f32(n), vdupq_n_s32(127)), 23));
  }
  static constexpr bool approximates = false;  // quotients
  static T reciprocal(T x) { return vdivq_f32(vdupq_n_f32(1), x); }
  static T div(T a, T b) { return vdivq_f32(a, b); }
  static T sqrt(T x) { return vsqrtq_f32(x); }
  static T step(T x) {  // 1 where x > 0, NaN where it is NaN
    const T one = vbslq_f32(vcgtzq_f32(x), vdupq_n_f32(1), vdupq_n_f32(0));
    return vbslq_f32(vceqq_f32(x, x), one, x);
  }
  static T select_negative(T x, T negative, T other) { return vbslq_f32(vcltzq_f32(x), negative, other); }
  static float sum(T x) { return vpadds_f32(vadd_f32(vget_low_f32(x), vget_high_f32(x))); }
  // The sum of each of four vectors.
  static T sums(const T (&x)[4]) { return vpaddq_f32(vpaddq_f32(x[0], x[1]), vpaddq_f32(x[2], x[3])); }

  // out[l][j] = in[j][l], 4 x 4.
  static void transpose(const float* in, int64_t in_ld, float* out, int64_t out_ld) {
    const T r0 = load(in), r1 = load(in + in_ld), r2 = load(in + 2 * in_ld), r3 = load(in + 3 * in_ld);
    const T a = vzip1q_f32(r0, r2), b = vzip2q_f32(r0, r2), c = vzip1q_f32(r1, r3), d = vzip2q_f32(r1, r3);
    store(out, vzip1q_f32(a, c));
    store(out + out_ld, vzip2q_f32(a, c));
    store(out + 2 * out_ld, vzip1q_f32(b, d));
    store(out + 3 * out_ld, vzip2q_f32(b, d));
  }

 private:
  static uint32x4_t load_bits(const uint16_t* p) { return vreinterpretq_u32_u16(vld1q_u16(p)); }
};

}  // namespace
}  // namespace sparsight::cpu
