// Loops of multiply-adds whose operands stay in registers: what one core can compute at most. One file per
// instruction-set level, with its own flags; so this header includes nothing that has inline functions.
#pragma once

#include <cstdint>

namespace sparsight::bench {

struct PeakLoop {
  double operations = 0;                  // multiplications and additions of one pass, 0: the level has no such units
  void (*run)(int64_t passes) = nullptr;  // on the calling thread
};

// fp32: products and sums in fp32. bf16: products of bf16, sums in fp32. int8: products of int8, sums in int32.
struct PeakLoops {
  PeakLoop fp32, bf16, int8;
};

constexpr int64_t kPeakSteps = 1000;  // of a pass

PeakLoops peak_loops_baseline();
PeakLoops peak_loops_avx2();        // int8: vpmaddubsw, vpmaddwd, vpaddd
PeakLoops peak_loops_avx512();      // int8: VNNI
PeakLoops peak_loops_avx512bf16();  // bf16 only
PeakLoops peak_loops_amx();         // bf16 and int8 on tiles

}  // namespace sparsight::bench
