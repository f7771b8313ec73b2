// Whether other processes, or other guests of the same host, took the cores during a measurement.
#pragma once

#include <cstdint>
#include <istream>
#include <string>

namespace sparsight::bench {

// Times since the machine or the process began.
struct CpuTimes {
  int64_t stolen = 0;   // ticks in which the host ran something else (steal of /proc/stat), of all cores
  int64_t busy = 0;     // ticks in which any process ran, of all cores
  int64_t total = 0;    // ticks of all cores
  int64_t own = 0;      // ticks in which this process ran
  int64_t running = 0;  // nanoseconds in which this process's threads ran
  int64_t delayed = 0;  // nanoseconds in which they were ready, but waited for a core (/proc/self/task/*/schedstat)
};

// Sets stolen, busy and total from the first line of /proc/stat. Returns whether it could.
bool read_machine_times(std::istream& stat, CpuTimes& times);
CpuTimes cpu_times_now();  // what the system does not count stays 0

// One line without an end, or "" if nothing relevant ran between the two: at most 1 % of the cores' time stolen, 2 % of
// our threads' time waiting, and 5 % of the cores' time used by other processes.
std::string interference_warning(const CpuTimes& before, const CpuTimes& after);

// Watches from its construction on.
class InterferenceWatch {
 public:
  // Prints the warning, if any, as a line of its own to stdout, and starts again.
  void print();

 private:
  CpuTimes before_ = cpu_times_now();
};

}  // namespace sparsight::bench
