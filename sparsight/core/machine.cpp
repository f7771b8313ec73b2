#include "sparsight/core/machine.h"

#include <time.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace sparsight {
namespace {

// The number in the line of `file` that begins with `key`; 0 if there is none.
int64_t kilobytes_in(const char* file, const std::string& key) {
  std::ifstream in(file);
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string name;
    int64_t kilobytes = 0;
    if (words >> name >> kilobytes && name == key) return kilobytes;
  }
  return 0;
}

}  // namespace

std::string compiler_name() {
#if defined(__clang__)
  return "clang " __clang_version__;
#else
  return "g++ " __VERSION__;
#endif
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0 && line.find(": ") != std::string::npos)
      return line.substr(line.find(": ") + 2);
  return "unknown";
}

bool has_fast_bfloat16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

int64_t available_memory_bytes() { return kilobytes_in("/proc/meminfo", "MemAvailable:") * 1024; }
int64_t resident_memory_bytes() { return kilobytes_in("/proc/self/status", "VmRSS:") * 1024; }
int64_t peak_memory_bytes() { return kilobytes_in("/proc/self/status", "VmHWM:") * 1024; }
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}
void reset_peak_memory() { std::ofstream("/proc/self/clear_refs") << "5"; }

int64_t PhasePeaks::end_phase() {
  const int64_t peak = peak_memory_bytes();
  highest_ = std::max(highest_, peak);
  reset_peak_memory();
  return peak;
}

int64_t PhasePeaks::bytes() const { return std::max(highest_, peak_memory_bytes()); }

}  // namespace sparsight
