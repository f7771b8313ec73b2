#include "bench/measure/interference.h"

#include <sys/times.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "sparsight/kernels/threads/contention.h"

namespace sparsight::bench {
namespace {

constexpr double kStolen = 0.01, kDelayed = 0.02, kOthers = 0.05;

double share(int64_t part, int64_t whole) {
  return whole > 0 ? std::max(0.0, static_cast<double>(part) / static_cast<double>(whole)) : 0;
}

}  // namespace

bool read_machine_times(std::istream& stat, CpuTimes& times) {
  std::string name;
  int64_t user = 0, nice = 0, system = 0, idle = 0, io_wait = 0, interrupts = 0, soft_interrupts = 0, steal = 0;
  if (!(stat >> name >> user >> nice >> system >> idle >> io_wait >> interrupts >> soft_interrupts >> steal) ||
      name != "cpu")
    return false;
  times.stolen = steal;
  times.busy = user + nice + system + interrupts + soft_interrupts;  // user includes guests
  times.total = times.busy + idle + io_wait + steal;
  return true;
}

CpuTimes cpu_times_now() {
  CpuTimes times;
  if (std::ifstream stat("/proc/stat"); stat) read_machine_times(stat, times);
  tms own{};
  if (::times(&own) != static_cast<clock_t>(-1))
    times.own = own.tms_utime + own.tms_stime + own.tms_cutime + own.tms_cstime;
  for (const auto& [number, thread] : cpu::thread_times()) {
    times.running += thread.running;
    times.delayed += thread.delayed;
  }
  return times;
}

std::string interference_warning(const CpuTimes& before, const CpuTimes& after) {
  const int64_t total = after.total - before.total, delayed = after.delayed - before.delayed;
  const double stolen = share(after.stolen - before.stolen, total),
               waiting = share(delayed, delayed + after.running - before.running),
               others = share((after.busy - before.busy) - (after.own - before.own), total);
  if (stolen <= kStolen && waiting <= kDelayed && others <= kOthers) return "";
  char buffer[256];
  std::snprintf(buffer, sizeof buffer,
                "warning: other processes ran during the measurement: our threads waited for a core %.0f %% of their "
                "time, others used %.0f %% of the cores' time, and the host took %.0f %%",
                100 * waiting, 100 * others, 100 * stolen);
  return buffer;
}

void InterferenceWatch::print() {
  const CpuTimes now = cpu_times_now();
  if (const std::string warning = interference_warning(before_, now); !warning.empty())
    std::printf("\n%s\n", warning.c_str());
  before_ = now;
}

}  // namespace sparsight::bench
