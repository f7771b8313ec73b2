#include <immintrin.h>

#include "bench/limits/peak_loops.h"

namespace sparsight::bench {
namespace {

constexpr int kSums = 24;  // enough to hide the latency, and few enough for 32 registers

volatile float sink, half = 0.5f;
volatile int int_sink, three = 3;

void fp32(int64_t passes) {
  const __m512 a = _mm512_set1_ps(half), b = _mm512_set1_ps(half);
  __m512 sums[kSums];
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  for (int64_t step = 0; step < passes * kPeakSteps; ++step)
#pragma GCC unroll 32
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(a, b, sum);
  for (const __m512& sum : sums) sink = _mm512_cvtss_f32(sum);
}

// Inline assembly, because g++ 12 adds a copy and a store of the sum to each _mm512_dpbusd_epi32().
[[gnu::always_inline]] inline __m512i add_products(__m512i sum, __m512i a, __m512i b) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  return sum;
}

void int8(int64_t passes) {
  const __m512i a = _mm512_set1_epi8(static_cast<char>(three)), b = a;
  __m512i sums[kSums];
  for (__m512i& sum : sums) sum = _mm512_setzero_si512();
  for (int64_t step = 0; step < passes * kPeakSteps; ++step)
#pragma GCC unroll 32
    for (__m512i& sum : sums) sum = add_products(sum, a, b);
  for (const __m512i& sum : sums) int_sink = _mm512_cvtsi512_si32(sum);
}

}  // namespace

PeakLoops peak_loops_avx512() {
  return {{2.0 * 16 * kSums * kPeakSteps, fp32}, {}, {2.0 * 64 * kSums * kPeakSteps, int8}};
}

}  // namespace sparsight::bench
