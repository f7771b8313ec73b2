#include <immintrin.h>

#include "bench/limits/peak_loops.h"
#include "sparsight/kernels/gemm/amx.h"

namespace sparsight::bench {
namespace {

constexpr int kSums = 6;  // tiles 0 to 5; 6 and 7 are the factors

// Sets all factors to the 16-bit pattern and all sums to 0.
void set_tiles(uint16_t pattern) {
  alignas(64) uint16_t factors[16 * 32];
  for (uint16_t& factor : factors) factor = pattern;
  cpu::compiler_barrier();
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_loadd(6, factors, 64);
  _tile_loadd(7, factors, 64);
}

void bf16(int64_t passes) {
  const cpu::TileRegisters registers;
  set_tiles(0x3f00);  // 0.5
  for (int64_t step = 0; step < passes * kPeakSteps; ++step) {
    _tile_dpbf16ps(0, 6, 7);
    _tile_dpbf16ps(1, 6, 7);
    _tile_dpbf16ps(2, 6, 7);
    _tile_dpbf16ps(3, 6, 7);
    _tile_dpbf16ps(4, 6, 7);
    _tile_dpbf16ps(5, 6, 7);
  }
}

void int8(int64_t passes) {
  const cpu::TileRegisters registers;
  set_tiles(0x0303);
  for (int64_t step = 0; step < passes * kPeakSteps; ++step) {
    _tile_dpbssd(0, 6, 7);
    _tile_dpbssd(1, 6, 7);
    _tile_dpbssd(2, 6, 7);
    _tile_dpbssd(3, 6, 7);
    _tile_dpbssd(4, 6, 7);
    _tile_dpbssd(5, 6, 7);
  }
}

}  // namespace

PeakLoops peak_loops_amx() {
  return {{}, {2.0 * 16 * 16 * 32 * kSums * kPeakSteps, bf16}, {2.0 * 16 * 16 * 64 * kSums * kPeakSteps, int8}};
}

}  // namespace sparsight::bench
