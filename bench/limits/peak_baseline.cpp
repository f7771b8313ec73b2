#include "bench/limits/peak_loops.h"

namespace sparsight::bench {
namespace {

typedef float Vector __attribute__((vector_size(16)));
constexpr int kSums = 12;  // enough to hide the latency, and few enough for 16 registers

volatile float sink, one = 1;

// Each multiply-add takes the last sum as a factor, since the product of constants could be computed once.
void fp32(int64_t passes) {
  const float half = 0.5f * one, addend = one;
  const Vector factor{half, half, half, half}, term{addend, addend, addend, addend};
  Vector sums[kSums] = {};
  for (int64_t step = 0; step < passes * kPeakSteps; ++step)
#pragma GCC unroll 32
    for (Vector& sum : sums) sum = sum * factor + term;
  for (const Vector& sum : sums) sink = sum[0];
}

}  // namespace

PeakLoops peak_loops_baseline() { return {{2.0 * 4 * kSums * kPeakSteps, fp32}, {}, {}}; }

}  // namespace sparsight::bench
