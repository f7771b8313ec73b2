// Vectors of 16 floats in four registers, which multiply pairs of bf16, for the neon_bf16 level: as wide as a panel of
// packed weights is. And tiles of 2 x 2 sums, four bf16 along the depth at a time. Included by isa/neon_bf16.cpp only.
#pragma once

#include "sparsight/kernels/gemm/bf16_tile_inl.h"
#include "sparsight/kernels/gemm/neon_matrix_inl.h"
#include "sparsight/kernels/isa/vectors_neon_inl.h"

namespace sparsight::cpu {
namespace {

// Four vectors as one. (Named members: compilers keep them in registers, which they do not with an array.)
template <class V>
struct Four {
  V a, b, c, d;
};
template <class F, class... X>
[[gnu::always_inline]] inline auto each_of_four(const F& f, const X&... x) {
  return Four{f(x.a...), f(x.b...), f(x.c...), f(x.d...)};
}

struct Bf16Numbers {
  static constexpr WeightType type = WeightType::bf16;
  using Sum = float32x4_t;
  static Sum add(Sum sums, uint32x4_t rows, uint32x4_t columns) {
    return vbfmmlaq_f32(sums, vreinterpretq_bf16_u32(rows), vreinterpretq_bf16_u32(columns));
  }
  static uint32x4_t nothing() { return vdupq_n_u32(0x80008000); }  // -0: adding +0 would turn a sum of -0 into +0
};

// The 2 x 2 sums of two rows of 16 columns, in the order of multiply_blocks().
[[gnu::always_inline]] inline void begin_blocks(const Four<float32x4_t>& first, const Four<float32x4_t>& second,
                                                float32x4_t* sum) {
  sum[0] = halves(0, first.a, second.a), sum[1] = halves(1, first.a, second.a);
  sum[2] = halves(0, first.b, second.b), sum[3] = halves(1, first.b, second.b);
  sum[4] = halves(0, first.c, second.c), sum[5] = halves(1, first.c, second.c);
  sum[6] = halves(0, first.d, second.d), sum[7] = halves(1, first.d, second.d);
}
// And one of the rows again.
[[gnu::always_inline]] inline Four<float32x4_t> row_of_blocks(int row, const float32x4_t* sum) {
  return {halves(row, sum[0], sum[1]), halves(row, sum[2], sum[3]), halves(row, sum[4], sum[5]),
          halves(row, sum[6], sum[7])};
}

// kMr x (kNv vectors) elements of C. The instruction is defined as two dot products of pairs, one after the other, so
// the bits are those of run_bf16_tile(), which a row alone takes.
template <class V, int kMr, int kNv>
void run_block_tile(const Tile& t) {
  if constexpr (kMr == 1) {
    run_bf16_tile<V, kMr, kNv>(t);
  } else {
    constexpr int kPairs = (kMr + 1) / 2;
    const TileOfC<V, kMr, kNv> c(t);
    typename V::T acc[kMr][kNv];
    c.begin(acc);
    float32x4_t sum[kPairs][8 * kNv];
#pragma GCC unroll 32
    for (int p = 0; p < kPairs; ++p)
#pragma GCC unroll 32
      for (int v = 0; v < kNv; ++v) begin_blocks(acc[2 * p][v], acc[min(2 * p + 1, kMr - 1)][v], sum[p] + 8 * v);
    multiply_blocks<Bf16Numbers, kMr, 4 * kNv>(t, sum);
    c.each([&](int i, int v) { acc[i][v] = row_of_blocks(i % 2, sum[i / 2] + 8 * v); });
    c.end(acc);
  }
}

struct Bf16Vec {
  using T = Four<float32x4_t>;
  static constexpr int lanes = 16;
  static constexpr TileShape tile(bool) { return {6, 1}; }
  static constexpr TileShape attention_tile() { return {6, 1}; }
  static constexpr int panel_rows = 6;
  static constexpr int panel_row_unit = 2;
  static constexpr int panel_vectors(int m) { return m == 1 ? 4 : m == 2 ? 3 : 1; }
  template <int kMr, int kNv>
  static constexpr TileFunction bf16_tile = run_block_tile<Bf16Vec, kMr, kNv>;

  static T load(const float* p) { return {Vec::load(p), Vec::load(p + 4), Vec::load(p + 8), Vec::load(p + 12)}; }
  static T load_part(const float* p, int n) {
    return {some(p, n), some(p + 4, n - 4), some(p + 8, n - 8), some(p + 12, n - 12)};
  }
  static void store(float* p, T x) {
    Vec::store(p, x.a), Vec::store(p + 4, x.b), Vec::store(p + 8, x.c), Vec::store(p + 12, x.d);
  }
  static void store_part(float* p, T x, int n) {
    store_some(p, x.a, n), store_some(p + 4, x.b, n - 4), store_some(p + 8, x.c, n - 8);
    store_some(p + 12, x.d, n - 12);
  }
  static void stream(float* p, T x) { store(p, x); }
  static void fence() {}
  static T set1(float x) { return {Vec::set1(x), Vec::set1(x), Vec::set1(x), Vec::set1(x)}; }

  // Pairs of 16 columns, and one pair that is multiplied with all of them.
  using Words = Four<uint16x8_t>;
  static uint16x8_t set_word(const int16_t* p) {
    uint32_t pair;
    std::memcpy(&pair, p, sizeof pair);
    return vreinterpretq_u16_u32(vdupq_n_u32(pair));
  }
  static T add_bf16_pairs(T sum, uint16x8_t a, Words b) {
    return each_of_four(
        [a](float32x4_t s, uint16x8_t of_b) {
          return vbfdotq_f32(s, vreinterpretq_bf16_u16(of_b), vreinterpretq_bf16_u16(a));
        },
        sum, b);
  }
  static Words load_bf16_pairs(const uint16_t* p, int) {
    return {vld1q_u16(p), vld1q_u16(p + 8), vld1q_u16(p + 16), vld1q_u16(p + 24)};
  }
  static void store_pairs(int16_t* p, Words x) {
    auto* const to = reinterpret_cast<uint16_t*>(p);
    vst1q_u16(to, x.a), vst1q_u16(to + 8, x.b), vst1q_u16(to + 16, x.c), vst1q_u16(to + 24, x.d);
  }
  // Rounded to bf16: low in the first 16 numbers, high in the last.
  static Words joined(T low, T high) {
    return {rounded(low.a, low.b), rounded(low.c, low.d), rounded(high.a, high.b), rounded(high.c, high.d)};
  }
  // Pair i is even[i], odd[i].
  static Words interleaved(T even, T odd) {
    return each_of_four(
        [](float32x4_t first, float32x4_t second) {
          return vzip1q_u16(vreinterpretq_u16_bf16(vcvtq_low_bf16_f32(first)),
                            vreinterpretq_u16_bf16(vcvtq_low_bf16_f32(second)));
        },
        even, odd);
  }

  static T add(T a, T b) { return each_of_four(Vec::add, a, b); }
  static T mul(T a, T b) { return each_of_four(Vec::mul, a, b); }
  static T fma(T a, T b, T c) { return each_of_four(Vec::fma, a, b, c); }
  static T min(T a, T b) { return each_of_four(Vec::min, a, b); }
  static T max(T a, T b) { return each_of_four(Vec::max, a, b); }
  static T round(T x) { return each_of_four(Vec::round, x); }
  static T power_of_two(T n) { return each_of_four(Vec::power_of_two, n); }
  static constexpr bool approximates = false;  // quotients
  static T reciprocal(T x) { return each_of_four(Vec::reciprocal, x); }
  static T step(T x) { return each_of_four(Vec::step, x); }
  static T select_negative(T x, T negative, T other) { return each_of_four(Vec::select_negative, x, negative, other); }
  static float sum(T x) { return Vec::sum(Vec::add(Vec::add(x.a, x.c), Vec::add(x.b, x.d))); }

  // out[l][j] = in[j][l], 16 x 16.
  static void transpose(const float* in, int64_t in_ld, float* out, int64_t out_ld) {
    for (int64_t j = 0; j < lanes; j += Vec::lanes)
      for (int64_t l = 0; l < lanes; l += Vec::lanes)
        Vec::transpose(in + j * in_ld + l, in_ld, out + l * out_ld + j, out_ld);
  }

 private:
  static float32x4_t some(const float* p, int n) {
    return n >= Vec::lanes ? Vec::load(p) : n > 0 ? Vec::load_part(p, n) : Vec::set1(0);
  }
  static void store_some(float* p, float32x4_t x, int n) {
    n >= Vec::lanes ? Vec::store(p, x) : Vec::store_part(p, x, n);
  }
  static uint16x8_t rounded(float32x4_t low, float32x4_t high) {
    return vreinterpretq_u16_bf16(vcvtq_high_bf16_f32(vcvtq_low_bf16_f32(low), high));
  }
};

}  // namespace
}  // namespace sparsight::cpu
