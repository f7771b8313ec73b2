// The machine's arithmetic peak: multiply-adds on registers, by all threads at once.
#pragma once

#include <cstdint>
#include <string>

#include "bench/limits/peak_loops.h"

namespace sparsight::bench {

// One of the loops, on all threads. A run takes about a millisecond. Its time is that of the processors, without what a
// thread waits for a core, so that other processes do not lower the peak.
class Peak {
 public:
  explicit Peak(const PeakLoop& loop);
  void run() const;
  double operations() const;                   // of a run; 0 if the level has no such loop
  double seconds() const { return seconds_; }  // of all runs until now: operations over the sum of the threads' rates

 private:
  PeakLoop loop_;
  int64_t passes_ = 1;
  mutable double seconds_ = 0;
};

// The peaks of the active instruction-set level of kernels/isa/isa.h. The type says what is multiplied; an operation is
// a multiplication or an addition.
struct Peaks {
  Peak fp32, bf16, int8;
  static Peaks of_active_isa();
};

// Operations per second at which this level could compute each type of the experts' products at most. The amx level
// computes fp32 from six products of bf16 (bf16x3), if that is faster than the vectors.
struct PeakRates {
  double fp32 = 0, bf16 = 0, int8 = 0;  // of the machine's loops; 0: none
  double for_fp32() const { return bf16 / 6 > fp32 ? bf16 / 6 : fp32; }
  double for_bf16() const { return bf16 > fp32 ? bf16 : fp32; }
  double for_int8() const { return int8 > for_bf16() ? int8 : for_bf16(); }
};

// Measures them once, apart from anything else: the fastest of several runs.
PeakRates measure_peaks(const Peaks& peaks);

// "AMD EPYC, 2 cores, instruction set avx2, 2 threads, peak 206 GFLOP/s fp32, 330 GOP/s int8"
std::string machine_line(const PeakRates& rates);

}  // namespace sparsight::bench
