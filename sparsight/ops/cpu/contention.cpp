#include "sparsight/ops/cpu/contention.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

namespace sparsight::cpu {
namespace {

constexpr int64_t kEvidence = 30'000'000;  // nanoseconds
constexpr double kBusy = 0.2, kCalm = 0.05;
constexpr int kCalmJudgements = 5;

}  // namespace

AllThreadTimes thread_times() {
  AllThreadTimes times;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc/self/task", error), end; !error && entry != end;
       entry.increment(error)) {
    ThreadTimes thread;
    if (std::ifstream(entry->path() / "schedstat") >> thread.running >> thread.delayed)
      times[std::atoi(entry->path().filename().c_str())] = thread;
  }
  return times;
}

bool ContentionJudge::update(const AllThreadTimes& now) {
  double worst = -1;
  std::erase_if(judged_, [&](const auto& thread) { return !now.contains(thread.first); });
  for (const auto& [number, times] : now) {
    ThreadTimes& before = judged_[number];
    const int64_t running = times.running - before.running, delayed = times.delayed - before.delayed;
    if (running + delayed < kEvidence) continue;
    worst = std::max(worst, static_cast<double>(delayed) / static_cast<double>(running + delayed));
    before = times;
  }
  if (worst < 0) return busy_;
  calm_ = worst < kCalm ? calm_ + 1 : 0;
  if (worst > kBusy) busy_ = true;
  if (calm_ >= kCalmJudgements) busy_ = false;
  return busy_;
}

}  // namespace sparsight::cpu
