// The baseline level, for CPUs without AVX2 and for other architectures: the compiler's own vectors of four floats, no
// instruction-set flags.
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "sparsight/kernels/isa/level_inl.h"

namespace sparsight::cpu {
namespace {

struct Vec {
  using T = float __attribute__((vector_size(16)));
  using Ints = int __attribute__((vector_size(16)));
  static constexpr int lanes = 4;
  static constexpr TileShape tile(bool) { return {6, 2}; }
  static constexpr TileShape attention_tile() { return {6, 2}; }  // attention/attention_inl.h
  static constexpr int64_t max_small_m = 64;
  static constexpr int64_t max_dots = 12;
  static constexpr int small_m_vectors = 2;
  static constexpr int64_t small_m_piece = 128;
  static constexpr int dots_across(int64_t rows) { return rows == 1 ? lanes : rows == 2 ? lanes / 2 : lanes / 4; }
  // Tiles with packed weights in panels (of four vectors):
  static constexpr int panel_rows = 3;
  static constexpr int panel_row_unit = 1;
  static constexpr int panel_vectors(int m) { return m == 1 ? 12 : 4; }

  static T load(const float* p) {
    T x;
    std::memcpy(&x, p, sizeof x);
    return x;
  }
  static T widened(const Ints& bf16) {
    const Ints bits = bf16 << 16;
    T x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
  }
  static T load(const uint16_t* p) { return widened(Ints{p[0], p[1], p[2], p[3]}); }
  // The first and second numbers of pairs of bf16.
  static T load_first(const uint16_t* p) { return widened(Ints{p[0], p[2], p[4], p[6]}); }
  static T load_second(const uint16_t* p) { return widened(Ints{p[1], p[3], p[5], p[7]}); }
  static T load_part(const float* p, int n) {
    T x = set1(0.0f);
    for (int i = 0; i < lanes; ++i)
      if (i < n) x[i] = p[i];
    return x;
  }
  static void store(float* p, T x) { std::memcpy(p, &x, sizeof x); }
  static void store_part(float* p, T x, int n) {
    for (int i = 0; i < lanes; ++i)
      if (i < n) p[i] = x[i];
  }
  static void stream(float* p, T x) { store(p, x); }
  static void fence() {}
  static T set1(float x) { return T{x, x, x, x}; }

  // Words of 32 bits are pairs of 16-bit integers: numbers 0 and 2, or 1 and 3, of four (in little-endian order). And
  // sums of their products.
  using Words = int16_t __attribute__((vector_size(16)));
  static Words set_word(const int16_t* p) { return Words{p[0], p[1], p[0], p[1], p[0], p[1], p[0], p[1]}; }
  static constexpr int quad_words = 2;
  using Quantised = int16_t;
  static int32_t start_of_sums(const int16_t*, int64_t) { return 0; }
  static Words load_quads(const int8_t* p, int word) {
    Words quads;
    std::memcpy(&quads, p, sizeof quads);
    return (word == 0 ? quads << 8 : quads) >> 8;
  }
  static Ints add_quads(Ints sum, Words a, Words b) {
#ifdef __SSE2__
    return sum + reinterpret_cast<Ints>(__builtin_ia32_pmaddwd128(a, b));
#else
    const Ints products = reinterpret_cast<Ints>(a * b);  // each at most 127 * 127
    return sum + (products << 16 >> 16) + (products >> 16);
#endif
  }
  static Ints no_sum() { return set_int(0); }
  static Ints set_int(int32_t x) { return Ints{x, x, x, x}; }
  static T to_float(Ints x) { return __builtin_convertvector(x, T); }
  static Ints magnitude(T x) { return reinterpret_cast<Ints>(x) & 0x7fffffff; }
  static Ints larger(Ints a, Ints b) { return a > b ? a : b; }
  static int32_t largest(Ints x) {
    const int32_t even = x[0] > x[2] ? x[0] : x[2], odd = x[1] > x[3] ? x[1] : x[3];
    return even > odd ? even : odd;
  }
  static constexpr int quantised_together = 1;
  static void store_quantised(int16_t* p, const T (&x)[1]) {
    constexpr int kOrder[] = {0, 2, 1, 3};
    for (int i = 0; i < lanes; ++i) p[i] = static_cast<int16_t>(std::lrint(x[0][kOrder[i]]));
  }

  static T add(T a, T b) { return a + b; }
  static T mul(T a, T b) { return a * b; }
  static T fma(T a, T b, T c) { return a * b + c; }
  // If either operand is NaN, min and max return the second one, so a NaN there is kept.
#ifdef __wasm_simd128__  // clang 14 chooses f32x4.max for a comparison with zero, which prefers 0 to -0
  static T min(T a, T b) { return reinterpret_cast<T>(__builtin_wasm_pmin_f32x4(b, a)); }
  static T max(T a, T b) { return reinterpret_cast<T>(__builtin_wasm_pmax_f32x4(b, a)); }
#else
  static T min(T a, T b) { return a < b ? a : b; }
  static T max(T a, T b) { return a > b ? a : b; }
#endif
  static T round(T x) {
    return T{std::nearbyint(x[0]), std::nearbyint(x[1]), std::nearbyint(x[2]), std::nearbyint(x[3])};
  }
  static T power_of_two(T n) {
    const Ints bits = (__builtin_convertvector(n, Ints) + 127) << 23;
    T out;
    std::memcpy(&out, &bits, sizeof out);
    return out;
  }
  static constexpr bool approximates = false;  // quotients
  static T reciprocal(T x) { return set1(1.0f) / x; }
  static T div(T a, T b) { return a / b; }
  static T sqrt(T x) { return T{std::sqrt(x[0]), std::sqrt(x[1]), std::sqrt(x[2]), std::sqrt(x[3])}; }
  static T step(T x) {  // 1 where x > 0, NaN where it is NaN
    const T one = x > set1(0.0f) ? set1(1.0f) : set1(0.0f);
    return x == x ? one : x;
  }
  static T select_negative(T x, T negative, T other) { return x < set1(0.0f) ? negative : other; }
  static float sum(T x) { return (x[0] + x[2]) + (x[1] + x[3]); }
  static T sums(const T (&x)[4]) { return T{sum(x[0]), sum(x[1]), sum(x[2]), sum(x[3])}; }
  static void transpose(const float* in, int64_t in_ld, float* out, int64_t out_ld) {
    for (int l = 0; l < lanes; ++l)
      store(out + l * out_ld, T{in[l], in[in_ld + l], in[2 * in_ld + l], in[3 * in_ld + l]});
  }
};

constexpr Kernels kTable = make_kernels<Vec>();
constexpr TrainingKernels kTrainingTable = make_training_kernels<Vec>();

}  // namespace

const Kernels& kernels_baseline() { return kTable; }
const TrainingKernels& training_kernels_baseline() { return kTrainingTable; }

}  // namespace sparsight::cpu
