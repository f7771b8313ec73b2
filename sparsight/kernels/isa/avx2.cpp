// The avx2 level, chosen on x86-64 CPUs with AVX2 and FMA but without the extensions of avx512: vectors of eight
// floats. Compiled with its own flags: see kernels/sources.cmake.
#include <immintrin.h>

#include <type_traits>
#include <utility>

#include "sparsight/kernels/isa/level_inl.h"
#include "sparsight/kernels/isa/x86_64.h"

namespace sparsight::cpu {
namespace {

struct Vec {
  using T = __m256;
  static constexpr int lanes = 8;
  // 12 of the 16 registers hold sums. With A transposed (gradients of weights) rows of the tile are 128 bytes, which
  // streaming stores write faster than 64.
  static constexpr TileShape tile(bool a_transposed) { return a_transposed ? TileShape{3, 4} : TileShape{6, 2}; }
  static constexpr TileShape attention_tile() { return {6, 2}; }  // attention/attention_inl.h
  // Small-M (gemm/small_m_inl.h):
  static constexpr int64_t max_small_m = 44;     // rows up to which it is chosen,
  static constexpr int64_t max_dots = 20;        // and with B transposed
  static constexpr int small_m_vectors = 3;      // vectors in registers of each of four rows of B
  static constexpr int64_t small_m_piece = 384;  // bytes per prefetch
  // Columns of a dot-product tile (B transposed) of one to four rows: up to 12 sums, each a vector.
  static constexpr int dots_across(int64_t rows) {
    constexpr int columns[] = {8, 6, 4, 3};
    return columns[rows - 1];
  }
  // Tiles with packed weights in panels (of two vectors):
  static constexpr int panel_rows = 6;
  static constexpr int panel_row_unit = 1;
  static constexpr int panel_vectors(int m) { return m == 1 ? 12 : m == 2 ? 6 : m == 3 ? 4 : 2; }

  static T load(const float* p) { return _mm256_loadu_ps(p); }
  static T load(const uint16_t* p) {
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
  }
  // The first and second numbers of pairs of bf16.
  static T load_first(const uint16_t* p) { return _mm256_castsi256_ps(_mm256_slli_epi32(load_bits(p), 16)); }
  static T load_second(const uint16_t* p) {
    return _mm256_castsi256_ps(_mm256_and_si256(load_bits(p), _mm256_set1_epi32(-65536)));
  }
  static T load_part(const float* p, int n) { return _mm256_maskload_ps(p, mask(n)); }
  static void store(float* p, T x) { _mm256_storeu_ps(p, x); }
  static void store_part(float* p, T x, int n) { _mm256_maskstore_ps(p, mask(n), x); }
  static void stream(float* p, T x) {
    if ((reinterpret_cast<uintptr_t>(p) & 31) == 0)
      _mm256_stream_ps(p, x);
    else
      _mm256_storeu_ps(p, x);
  }
  static void fence() { _mm_sfence(); }
  static T set1(float x) { return _mm256_set1_ps(x); }

  // Words of 32 bits are pairs of 16-bit integers: numbers 0 and 2, or 1 and 3, of four. And sums of their products.
  using Words = __m256i;
  using Ints = __m256i;
  static Words set_word(const int16_t* p) {
    int word;
    std::memcpy(&word, p, sizeof word);
    return _mm256_set1_epi32(word);
  }
  static constexpr int quad_words = 2;
  using Quantised = int16_t;
  static int32_t start_of_sums(const int16_t*, int64_t) { return 0; }
  static Words load_quads(const int8_t* p, int word) {
    const __m256i quads = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm256_srai_epi16(word == 0 ? _mm256_slli_epi16(quads, 8) : quads, 8);
  }
  static Ints add_quads(Ints sum, Words a, Words b) {
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
    asm("" : "+x"(sum));  // no instruction, but keeps compilers from adding products first, for which registers lack
    return sum;
  }
  static Ints no_sum() { return _mm256_setzero_si256(); }
  static Ints set_int(int32_t x) { return _mm256_set1_epi32(x); }
  static T to_float(Ints x) { return _mm256_cvtepi32_ps(x); }
  static Ints magnitude(T x) { return _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x7fffffff)); }
  static Ints larger(Ints a, Ints b) { return _mm256_max_epi32(a, b); }
  static int32_t largest(Ints x) {
    const __m128i four = _mm_max_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    const __m128i two = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return _mm_cvtsi128_si32(_mm_max_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
  }
  static constexpr int quantised_together = 2;
  static void store_quantised(int16_t* p, const T (&x)[2]) {
    const __m256i mixed = _mm256_packs_epi32(_mm256_cvtps_epi32(x[0]), _mm256_cvtps_epi32(x[1]));
    const __m256i in_order = _mm256_permute4x64_epi64(mixed, 0xd8);
    const __m256i even_first = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15));  // of each four
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_shuffle_epi8(in_order, even_first));
  }

  static T add(T a, T b) { return _mm256_add_ps(a, b); }
  static T mul(T a, T b) { return _mm256_mul_ps(a, b); }
  static T fma(T a, T b, T c) { return _mm256_fmadd_ps(a, b, c); }
  // If either operand is NaN, min and max return the second one, so a NaN there is kept.
  static T min(T a, T b) { return _mm256_min_ps(a, b); }
  static T max(T a, T b) { return _mm256_max_ps(a, b); }
  static T round(T x) { return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static T power_of_two(T n) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23));
  }
  static constexpr bool approximates = false;  // quotients
  static T reciprocal(T x) { return _mm256_div_ps(_mm256_set1_ps(1.0f), x); }
  static T div(T a, T b) { return _mm256_div_ps(a, b); }
  static T sqrt(T x) { return _mm256_sqrt_ps(x); }
  static T step(T x) {  // 1 where x > 0, NaN where it is NaN
    const T one = _mm256_and_ps(_mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_GT_OQ), _mm256_set1_ps(1.0f));
    return _mm256_blendv_ps(one, x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  }
  static T select_negative(T x, T negative, T other) {
    return _mm256_blendv_ps(other, negative, _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_LT_OQ));
  }
  static float sum(T x) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  // The sum of each of 8 vectors.
  static T sums(const T (&x)[8]) {
    T four[2];
    for (int h = 0; h < 2; ++h)
      four[h] = _mm256_hadd_ps(_mm256_hadd_ps(x[4 * h], x[4 * h + 1]), _mm256_hadd_ps(x[4 * h + 2], x[4 * h + 3]));
    return _mm256_add_ps(_mm256_permute2f128_ps(four[0], four[1], 0x20),
                         _mm256_permute2f128_ps(four[0], four[1], 0x31));
  }

  // out[l][j] = in[j][l], 8 x 8: half rows are inserted while loading, which leaves two rounds of shuffles.
  static void transpose(const float* in, int64_t in_ld, float* out, int64_t out_ld) {
    for (int h = 0; h < 2; ++h) {  // columns 4h .. 4h+3 of `in`
      T r[4];
      for (int i = 0; i < 4; ++i) {
        const float* p = in + i * in_ld + 4 * h;
        r[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), _mm_loadu_ps(p + 4 * in_ld), 1);
      }
      const T a = _mm256_unpacklo_ps(r[0], r[1]), b = _mm256_unpackhi_ps(r[0], r[1]);
      const T c = _mm256_unpacklo_ps(r[2], r[3]), d = _mm256_unpackhi_ps(r[2], r[3]);
      float* to = out + 4 * h * out_ld;
      _mm256_storeu_ps(to, _mm256_shuffle_ps(a, c, 0x44));
      _mm256_storeu_ps(to + out_ld, _mm256_shuffle_ps(a, c, 0xee));
      _mm256_storeu_ps(to + 2 * out_ld, _mm256_shuffle_ps(b, d, 0x44));
      _mm256_storeu_ps(to + 3 * out_ld, _mm256_shuffle_ps(b, d, 0xee));
    }
  }

 private:
  static __m256i load_bits(const uint16_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  static __m256i mask(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
};

constexpr Kernels kTable = make_kernels<Vec>();
constexpr TrainingKernels kTrainingTable = make_training_kernels<Vec>();

}  // namespace

const Kernels& kernels_avx2() { return kTable; }
const TrainingKernels& training_kernels_avx2() { return kTrainingTable; }

}  // namespace sparsight::cpu
