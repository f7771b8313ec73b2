// Vectors of 16 floats, for the avx512 and avx512_bf16 levels. Included by their source files only.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "sparsight/kernels/gemm/tile_inl.h"

namespace sparsight::cpu {
namespace {

struct Vec {
  using T = __m512;
  static constexpr int lanes = 16;
  // 27 of the 32 registers hold sums; 24 with A transposed (gradients of weights), where rows of the tile are 256
  // bytes, which streaming stores write faster than 192.
  static constexpr TileShape tile(bool a_transposed) { return a_transposed ? TileShape{6, 4} : TileShape{9, 3}; }
  // 64 columns: many heads have this size, and few tokens fill it better than 48 (attention/attention_inl.h)
  static constexpr TileShape attention_tile() { return {6, 4}; }
  // Small-M (gemm/small_m_inl.h):
  static constexpr int64_t max_small_m = 40;    // rows up to which it is chosen,
  static constexpr int64_t max_dots = 20;       // and with B transposed
  static constexpr int small_m_vectors = 4;     // vectors in registers of each of four rows of B
  static constexpr int64_t small_m_piece = 64;  // bytes per prefetch: longer bursts make loads wait
  // Columns of a dot-product tile (B transposed) of one to four rows: up to 16 sums, each a vector.
  static constexpr int dots_across(int64_t rows) {
    constexpr int columns[] = {16, 8, 4, 4};
    return columns[rows - 1];
  }
  // Tiles with packed weights in panels (of one vector):
  static constexpr int panel_rows = 9;
  static constexpr int panel_row_unit = 1;
  static constexpr int panel_vectors(int m) { return m <= 6 ? 4 : 3; }

  static T load(const float* p) { return _mm512_loadu_ps(p); }
  static T load(const uint16_t* p) {
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
  }
  // The first and second numbers of pairs of bf16.
  static T load_first(const uint16_t* p) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(p), 16)); }
  static T load_second(const uint16_t* p) {
    return _mm512_castsi512_ps(_mm512_and_si512(_mm512_loadu_si512(p), _mm512_set1_epi32(-65536)));
  }
  static T load_part(const float* p, int n) { return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), p); }
  static void store(float* p, T x) { _mm512_storeu_ps(p, x); }
  static void store_part(float* p, T x, int n) { _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1), x); }
  static void stream(float* p, T x) {
    if ((reinterpret_cast<uintptr_t>(p) & 63) == 0)
      _mm512_stream_ps(p, x);
    else
      _mm512_storeu_ps(p, x);
  }
  static void fence() { _mm_sfence(); }
  static T set1(float x) { return _mm512_set1_ps(x); }

  // Words of 32 bits: pairs of bf16 (in a derived class), or four integers; and sums of their products.
  using Words = __m512i;
  using Ints = __m512i;
  static Words set_word(const int16_t* p) {
    int word;
    std::memcpy(&word, p, sizeof word);
    return _mm512_set1_epi32(word);
  }
  // The instruction multiplies signed with unsigned numbers: weights are offset by 128, and sums start from -128 times
  // the sum of the row.
  static constexpr int32_t weight_offset = 128;
  static constexpr int quad_words = 1;
  using Quantised = int8_t;
  static int32_t start_of_sums(const int8_t* row, int64_t depth) {  // the row ends with zeros
    Ints sum = no_sum();
    for (int64_t l = 0; l < depth; l += 4 * lanes)
      sum = add_quads(sum, _mm512_loadu_si512(row + l), _mm512_set1_epi8(1));
    return -weight_offset * _mm512_reduce_add_epi32(sum);
  }
  static Words load_quads(const int8_t* p, int) {
    return _mm512_xor_si512(_mm512_loadu_si512(p), _mm512_set1_epi8(static_cast<char>(weight_offset)));
  }
  // Inline assembly, because g++ 12 adds a copy and a store of the sum to each _mm512_dpbusd_epi32(): half as fast.
  static Ints add_quads(Ints sum, Words a, Words b) {
    asm("vpdpbusd %1, %2, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
  }
  static Ints no_sum() { return _mm512_setzero_si512(); }
  static Ints set_int(int32_t x) { return _mm512_set1_epi32(x); }
  static T to_float(Ints x) { return _mm512_cvtepi32_ps(x); }
  static Ints magnitude(T x) { return _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff)); }
  static Ints larger(Ints a, Ints b) { return _mm512_max_epi32(a, b); }
  static int32_t largest(Ints x) { return _mm512_reduce_max_epi32(x); }
  static constexpr int quantised_together = 4;
  static void store_quantised(int8_t* p, const T (&x)[4]) {
    const auto pair = [&](int i) { return _mm512_packs_epi32(_mm512_cvtps_epi32(x[i]), _mm512_cvtps_epi32(x[i + 1])); };
    // Packing leaves a quarter of each vector in each quarter of the result.
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    _mm512_storeu_si512(p, _mm512_permutexvar_epi32(order, _mm512_packs_epi16(pair(0), pair(2))));
  }

  static T add(T a, T b) { return _mm512_add_ps(a, b); }
  static T mul(T a, T b) { return _mm512_mul_ps(a, b); }
  static T fma(T a, T b, T c) { return _mm512_fmadd_ps(a, b, c); }
  // If either operand is NaN, min and max return the second one, so a NaN there is kept.
  static T min(T a, T b) { return _mm512_min_ps(a, b); }
  static T max(T a, T b) { return _mm512_max_ps(a, b); }
  static T round(T x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static T power_of_two(T n) { return _mm512_scalef_ps(_mm512_set1_ps(1.0f), n); }
  static constexpr bool approximates = true;  // quotients
  static T reciprocal(T x) {
    const T r = _mm512_rcp14_ps(x);
    return _mm512_mul_ps(r, _mm512_fnmadd_ps(x, r, _mm512_set1_ps(2.0f)));
  }
  static T div(T a, T b) { return _mm512_div_ps(a, b); }
  static T sqrt(T x) { return _mm512_sqrt_ps(x); }
  static T step(T x) {  // 1 where x > 0, NaN where it is NaN
    const T one = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_GT_OQ), _mm512_set1_ps(1.0f));
    return _mm512_mask_mov_ps(one, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), x);
  }
  static T select_negative(T x, T negative, T other) {
    return _mm512_mask_mov_ps(other, _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ), negative);
  }
  static float sum(T x) {
    const __m512 eight = _mm512_add_ps(x, _mm512_shuffle_f32x4(x, x, 0x4e));
    const __m512 four = _mm512_add_ps(eight, _mm512_shuffle_f32x4(eight, eight, 0xb1));
    const __m128 last = _mm512_castps512_ps128(four), two = _mm_add_ps(last, _mm_movehl_ps(last, last));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  // The sum of each of 16 vectors.
  static T sums(const T (&x)[16]) {
    T four[4];
    for (int q = 0; q < 4; ++q) {
      const auto pair = [&](int i) {
        return _mm512_add_ps(_mm512_unpacklo_ps(x[i], x[i + 1]), _mm512_unpackhi_ps(x[i], x[i + 1]));
      };
      const T a = pair(4 * q), b = pair(4 * q + 2);
      four[q] = _mm512_add_ps(pair_low(a, b), pair_high(a, b));
    }
    const auto joined = [](T a, T b) {
      return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
    };
    return joined(joined(four[0], four[1]), joined(four[2], four[3]));
  }

  // out[l][j] = in[j][l], 16 x 16: quarter rows are inserted while loading, which leaves two rounds of shuffles.
  static void transpose(const float* in, int64_t in_ld, float* out, int64_t out_ld) {
    for (int q = 0; q < 4; ++q) {  // columns 4q .. 4q+3 of `in`
      T r[4];
      for (int i = 0; i < 4; ++i) {  // rows i, i+4, i+8, i+12, four columns each
        const float* p = in + i * in_ld + 4 * q;
        T x = _mm512_castps128_ps512(_mm_loadu_ps(p));
        x = _mm512_insertf32x4(x, _mm_loadu_ps(p + 4 * in_ld), 1);
        x = _mm512_insertf32x4(x, _mm_loadu_ps(p + 8 * in_ld), 2);
        r[i] = _mm512_insertf32x4(x, _mm_loadu_ps(p + 12 * in_ld), 3);
      }
      const T a = _mm512_unpacklo_ps(r[0], r[1]), b = _mm512_unpackhi_ps(r[0], r[1]);
      const T c = _mm512_unpacklo_ps(r[2], r[3]), d = _mm512_unpackhi_ps(r[2], r[3]);
      float* to = out + 4 * q * out_ld;
      _mm512_storeu_ps(to, pair_low(a, c));
      _mm512_storeu_ps(to + out_ld, pair_high(a, c));
      _mm512_storeu_ps(to + 2 * out_ld, pair_low(b, d));
      _mm512_storeu_ps(to + 3 * out_ld, pair_high(b, d));
    }
  }

 private:
  static T pair_low(T a, T b) { return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b))); }
  static T pair_high(T a, T b) {
    return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
  }
};

}  // namespace
}  // namespace sparsight::cpu
