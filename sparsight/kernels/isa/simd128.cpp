// The simd128 level of WebAssembly: vectors of four floats. A multiply-add is two instructions, each of which rounds.
#include <wasm_simd128.h>

#include <cstdint>

#include "sparsight/kernels/isa/level_inl.h"
#include "sparsight/kernels/isa/wasm.h"

namespace sparsight::cpu {
namespace {

struct Vec {
  using T = float __attribute__((vector_size(16)));  // v128_t is a vector of integers: operators would be theirs
  static constexpr int lanes = 4;
  // Engines on x86-64 have 16 registers: 12 hold sums.
  static constexpr TileShape tile(bool) { return {6, 2}; }
  static constexpr TileShape attention_tile() { return {6, 2}; }  // attention/attention_inl.h
  // Small-M (gemm/small_m_inl.h), as for baseline, which has vectors of the same size:
  static constexpr int64_t max_small_m = 64;     // rows up to which it is chosen,
  static constexpr int64_t max_dots = 12;        // and with B transposed
  static constexpr int small_m_vectors = 2;      // vectors in registers of each of four rows of B
  static constexpr int64_t small_m_piece = 128;  // bytes per prefetch
  // Columns of a dot-product tile (B transposed) of one to four rows: up to 12 sums, each a vector.
  static constexpr int dots_across(int64_t rows) {
    constexpr int columns[] = {8, 6, 4, 3};
    return columns[rows - 1];
  }
  // Tiles with packed weights in panels (of four vectors). With 12 sums, which leave too few registers for four vectors
  // of weights, a ViT took 1.1 times as long in Node 20.
  static constexpr int panel_rows = 2;
  static constexpr int panel_row_unit = 1;
  static constexpr int panel_vectors(int m) { return m == 1 ? 8 : 4; }

  static T load(const float* p) { return T(wasm_v128_load(p)); }
  static T load(const uint16_t* p) { return T(wasm_i32x4_shl(wasm_u32x4_load16x4(p), 16)); }
  // The first and second numbers of pairs of bf16.
  static T load_first(const uint16_t* p) { return T(wasm_i32x4_shl(wasm_v128_load(p), 16)); }
  static T load_second(const uint16_t* p) {
    return T(wasm_v128_and(wasm_v128_load(p), wasm_i32x4_const_splat(-65536)));
  }
  static T load_part(const float* p, int n) {
    if (n >= 4) return load(p);
    v128_t x = wasm_i32x4_const_splat(0);
    if (n >= 2) x = wasm_v128_load64_zero(p);
    if (n == 3) x = wasm_v128_load32_lane(p + 2, x, 2);
    if (n == 1) x = wasm_v128_load32_zero(p);
    return T(x);
  }
  static void store(float* p, T x) { wasm_v128_store(p, v128_t(x)); }
  static void store_part(float* p, T x, int n) {
    if (n >= 4) return store(p, x);
    if (n >= 2) wasm_v128_store64_lane(p, v128_t(x), 0);
    if (n == 3) wasm_v128_store32_lane(p + 2, v128_t(x), 2);
    if (n == 1) wasm_v128_store32_lane(p, v128_t(x), 0);
  }
  static void stream(float* p, T x) { store(p, x); }
  static void fence() {}
  static T set1(float x) { return T(wasm_f32x4_splat(x)); }

  // Words of 32 bits are pairs of 16-bit integers: numbers 0 and 2, or 1 and 3, of four. And sums of their products.
  using Words = int16_t __attribute__((vector_size(16)));
  using Ints = int32_t __attribute__((vector_size(16)));
  static Words set_word(const int16_t* p) { return Words(wasm_v128_load32_splat(p)); }
  static constexpr int quad_words = 2;
  using Quantised = int16_t;
  static int32_t start_of_sums(const int16_t*, int64_t) { return 0; }
  static Words load_quads(const int8_t* p, int word) {
    const v128_t quads = wasm_v128_load(p);
    return Words(wasm_i16x8_shr(word == 0 ? wasm_i16x8_shl(quads, 8) : quads, 8));
  }
  static Ints add_quads(Ints sum, Words a, Words b) {
    return Ints(wasm_i32x4_add(v128_t(sum), wasm_i32x4_dot_i16x8(v128_t(a), v128_t(b))));
  }
  static Ints no_sum() { return set_int(0); }
  static Ints set_int(int32_t x) { return Ints(wasm_i32x4_splat(x)); }
  static T to_float(Ints x) { return T(wasm_f32x4_convert_i32x4(v128_t(x))); }
  static Ints magnitude(T x) { return Ints(wasm_f32x4_abs(v128_t(x))); }
  static Ints larger(Ints a, Ints b) { return Ints(wasm_i32x4_max(v128_t(a), v128_t(b))); }
  static int32_t largest(Ints x) {
    const v128_t two = wasm_i32x4_max(v128_t(x), wasm_i32x4_shuffle(v128_t(x), v128_t(x), 2, 3, 0, 1));
    return wasm_i32x4_extract_lane(wasm_i32x4_max(two, wasm_i32x4_shuffle(two, two, 1, 0, 3, 2)), 0);
  }
  static constexpr int quantised_together = 1;
  static void store_quantised(int16_t* p, const T (&x)[1]) {
    const v128_t whole = wasm_i32x4_trunc_sat_f32x4(wasm_f32x4_nearest(v128_t(x[0])));
    const v128_t even_first = wasm_i32x4_shuffle(whole, whole, 0, 2, 1, 3);
    wasm_v128_store64_lane(p, wasm_i16x8_narrow_i32x4(even_first, even_first), 0);
  }

  static T add(T a, T b) { return a + b; }
  static T mul(T a, T b) { return a * b; }
  static T fma(T a, T b, T c) { return a * b + c; }
  // If either operand is NaN, or both are zeros, min and max return the second one, as on x86.
  static T min(T a, T b) { return T(wasm_f32x4_pmin(v128_t(b), v128_t(a))); }
  static T max(T a, T b) { return T(wasm_f32x4_pmax(v128_t(b), v128_t(a))); }
  static T round(T x) { return T(wasm_f32x4_nearest(v128_t(x))); }
  // n is a whole number of at most 22 bits: added to 1.5 * 2^23 it is the lowest bits of the sum. (Conversions to
  // integers take an engine on x86-64 several instructions, for what is out of range.)
  static T power_of_two(T n) {
    const v128_t bits = v128_t(n + set1(12582912.0f));
    return T(wasm_i32x4_shl(wasm_i32x4_add(bits, wasm_i32x4_const_splat(127)), 23));
  }
  static constexpr bool approximates = false;  // quotients
  static T reciprocal(T x) { return set1(1.0f) / x; }
  static T div(T a, T b) { return a / b; }
  static T sqrt(T x) { return T(wasm_f32x4_sqrt(v128_t(x))); }
  static T step(T x) {  // 1 where x > 0, NaN where it is NaN
    const v128_t one = wasm_v128_and(wasm_f32x4_gt(v128_t(x), v128_t(set1(0.0f))), v128_t(set1(1.0f)));
    return T(wasm_v128_bitselect(one, v128_t(x), wasm_f32x4_eq(v128_t(x), v128_t(x))));
  }
  static T select_negative(T x, T negative, T other) {
    return T(wasm_v128_bitselect(v128_t(negative), v128_t(other), wasm_f32x4_lt(v128_t(x), v128_t(set1(0.0f)))));
  }
  static float sum(T x) { return (x[0] + x[2]) + (x[1] + x[3]); }
  // The sum of each of four vectors.
  static T sums(const T (&x)[4]) {
    T rows[4];
    transpose(x, rows);
    return (rows[0] + rows[2]) + (rows[1] + rows[3]);
  }

  // out[l][j] = in[j][l], 4 x 4.
  static void transpose(const float* in, int64_t in_ld, float* out, int64_t out_ld) {
    const T x[4] = {load(in), load(in + in_ld), load(in + 2 * in_ld), load(in + 3 * in_ld)};
    T y[4];
    transpose(x, y);
    for (int l = 0; l < 4; ++l) store(out + l * out_ld, y[l]);
  }

 private:
  static void transpose(const T (&x)[4], T (&y)[4]) {
    const T a = __builtin_shufflevector(x[0], x[1], 0, 4, 1, 5), b = __builtin_shufflevector(x[2], x[3], 0, 4, 1, 5);
    const T c = __builtin_shufflevector(x[0], x[1], 2, 6, 3, 7), d = __builtin_shufflevector(x[2], x[3], 2, 6, 3, 7);
    y[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5);
    y[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
    y[2] = __builtin_shufflevector(c, d, 0, 1, 4, 5);
    y[3] = __builtin_shufflevector(c, d, 2, 3, 6, 7);
  }
};

constexpr Kernels kTable = make_kernels<Vec>();
constexpr TrainingKernels kTrainingTable = make_training_kernels<Vec>();

}  // namespace

const Kernels& kernels_simd128() { return kTable; }
const TrainingKernels& training_kernels_simd128() { return kTrainingTable; }

}  // namespace sparsight::cpu
