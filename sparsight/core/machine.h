// What the program knows about itself and the machine it runs on.
#pragma once

#include <cstdint>
#include <string>

namespace sparsight {

std::string compiler_name();   // "g++ 12.2.0"
std::string processor_name();  // as the system reports it, or "unknown"
std::string torch_version();   // of the headers it was built with
// The best instruction set that torch's kernels use here: "DEFAULT", "AVX2", "AVX512", ...
std::string instruction_set();
// Whether bf16 matrix products run in hardware (AVX-512 BF16 or AMX).
bool has_fast_bfloat16();
int64_t available_memory_bytes();  // 0 if unknown
// Resident memory of this process, now and at its peak since the process began or reset_peak_memory(); 0 if unknown.
int64_t resident_memory_bytes();
int64_t peak_memory_bytes();
void reset_peak_memory();
double thread_seconds();  // processor time of the calling thread

inline double mebibytes(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

// Peaks of resident memory of the phases of a computation, the first of which begins now. Each is what the process has
// altogether, weights and data of other phases included. Where the system does not reset peaks, a phase has the highest
// one so far.
class PhasePeaks {
 public:
  PhasePeaks() { reset_peak_memory(); }
  int64_t end_phase();    // bytes at its peak; the next begins
  int64_t bytes() const;  // at the highest peak so far, the phase that has not ended included; 0 if unknown

 private:
  int64_t highest_ = 0;  // of the phases that have ended
};

}  // namespace sparsight
