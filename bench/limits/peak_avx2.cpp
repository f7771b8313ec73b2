#include <immintrin.h>

#include "bench/limits/peak_loops.h"

namespace sparsight::bench {
namespace {

constexpr int kSums = 12;  // enough to hide the latency, and few enough for 16 registers

volatile float sink, half = 0.5f;
volatile int int_sink, three = 3;

void fp32(int64_t passes) {
  const __m256 a = _mm256_set1_ps(half), b = _mm256_set1_ps(half);
  __m256 sums[kSums];
  for (__m256& sum : sums) sum = _mm256_setzero_ps();
  for (int64_t step = 0; step < passes * kPeakSteps; ++step)
#pragma GCC unroll 32
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(a, b, sum);
  for (const __m256& sum : sums) sink = _mm256_cvtss_f32(sum);
}

void int8(int64_t passes) {
  __m256i a = _mm256_set1_epi8(static_cast<char>(three));
  const __m256i b = a, ones = _mm256_set1_epi16(1);
  __m256i sums[kSums];
  for (__m256i& sum : sums) sum = _mm256_setzero_si256();
  for (int64_t step = 0; step < passes * kPeakSteps; ++step)
#pragma GCC unroll 32
    for (__m256i& sum : sums) {
      asm volatile("" : "+x"(a));  // no instruction, but keeps the compiler from computing the product only once
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), ones));
    }
  for (const __m256i& sum : sums) int_sink = _mm256_cvtsi256_si32(sum);
}

}  // namespace

PeakLoops peak_loops_avx2() {
  return {{2.0 * 8 * kSums * kPeakSteps, fp32}, {}, {2.0 * 32 * kSums * kPeakSteps, int8}};
}

}  // namespace sparsight::bench
