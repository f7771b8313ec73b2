#include <immintrin.h>

#include "bench/limits/peak_loops.h"

namespace sparsight::bench {
namespace {

constexpr int kSums = 24;

volatile float sink, half = 0.5f;

void bf16(int64_t passes) {
  const __m512 value = _mm512_set1_ps(half);
  const __m512bh a = _mm512_cvtne2ps_pbh(value, value), b = a;
  __m512 sums[kSums];
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  for (int64_t step = 0; step < passes * kPeakSteps; ++step)
#pragma GCC unroll 32
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, a, b);
  for (const __m512& sum : sums) sink = _mm512_cvtss_f32(sum);
}

}  // namespace

PeakLoops peak_loops_avx512bf16() { return {{}, {2.0 * 32 * kSums * kPeakSteps, bf16}, {}}; }

}  // namespace sparsight::bench
