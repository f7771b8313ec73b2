#include "bench/limits/peak.h"

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <thread>
#include <vector>

#include <ATen/Parallel.h>

#include "sparsight/kernels/isa/isa.h"
#include "sparsight/kernels/kernels.h"

namespace sparsight::bench {
namespace {

constexpr double kSeconds = 1e-3;  // of a run

// The calling thread's time.
double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double timed_here(const PeakLoop& loop, int64_t passes) {
  const double start = processor_seconds();
  loop.run(passes);
  return processor_seconds() - start;
}

PeakLoops active_loops() {
#if defined(__x86_64__)
  PeakLoops loops = peak_loops_baseline();
  const cpu::Kernels& level = cpu::kernels();
  if (level.vector_bytes == 32) loops = peak_loops_avx2();
  if (level.vector_bytes == 64) loops = peak_loops_avx512();
  if (level.multiplies_bf16) loops.bf16 = peak_loops_avx512bf16().bf16;
  if (level.has_tiles) loops.bf16 = peak_loops_amx().bf16, loops.int8 = peak_loops_amx().int8;
  return loops;
#else
  return peak_loops_baseline();
#endif
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown CPU";
}

}  // namespace

Peak::Peak(const PeakLoop& loop) : loop_(loop) {
  if (!loop_.run) return;
  constexpr int64_t kTrial = 20;
  timed_here(loop_, kTrial);  // the first may still raise the clock
  passes_ = std::max<int64_t>(1, static_cast<int64_t>(kSeconds / timed_here(loop_, kTrial) * kTrial));
}

void Peak::run() const {
  if (!loop_.run) return;
  std::vector<double> seconds(static_cast<size_t>(at::get_num_threads()));
  at::parallel_for(0, at::get_num_threads(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t thread = begin; thread < end; ++thread)
      seconds[static_cast<size_t>(thread)] = timed_here(loop_, passes_);
  });
  double rates = 0;  // runs per second of all threads
  for (const double own : seconds) rates += 1 / own;
  seconds_ += static_cast<double>(seconds.size()) / rates;
}

double Peak::operations() const {
  return loop_.operations * static_cast<double>(passes_) * static_cast<double>(at::get_num_threads());
}

Peaks Peaks::of_active_isa() {
  const PeakLoops loops = active_loops();
  return {Peak(loops.fp32), Peak(loops.bf16), Peak(loops.int8)};
}

PeakRates measure_peaks(const Peaks& peaks) {
  const auto rate = [](const Peak& peak) {
    double best = 0;
    for (int i = 0; i < 20 && peak.operations() > 0; ++i) {
      const double start = peak.seconds();
      peak.run();
      best = std::max(best, peak.operations() / (peak.seconds() - start));
    }
    return best;
  };
  return {rate(peaks.fp32), rate(peaks.bf16), rate(peaks.int8)};
}

std::string machine_line(const PeakRates& rates) {
  std::string line = cpu_name() + ", " + std::to_string(std::thread::hardware_concurrency()) +
                     " cores, instruction set " + active_isa() + ", " + std::to_string(at::get_num_threads()) +
                     " threads, peak";
  const auto add = [&line](double value, const char* unit, const char* separator) {
    char text[64];
    std::snprintf(text, sizeof text, "%s %.0f %s", separator, value / 1e9, unit);
    if (value > 0) line += text;
  };
  add(rates.fp32, "GFLOP/s fp32", "");
  add(rates.bf16, "GFLOP/s bf16", ",");
  add(rates.int8, "GOP/s int8", ",");
  return line;
}

}  // namespace sparsight::bench
