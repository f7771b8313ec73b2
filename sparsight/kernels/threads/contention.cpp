#include "sparsight/kernels/threads/contention.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

namespace sparsight::cpu {
namespace {

constexpr int64_t kEvidence = 30'000'000;  // nanoseconds
constexpr double kBusy = 0.2, kCalm = 0.05;
constexpr int kCalmJudgements = 5;
constexpr double kNewest = 0.25, kCrowded = 0.75, kSpacious = 0.5;
constexpr double kPresent = 0.4, kGone = 0.2;

// Calls body(number, folder) for each thread of this process.
template <class Body>
void for_own_threads(const Body& body) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc/self/task", error), end; !error && entry != end;
       entry.increment(error))
    body(std::atoi(entry->path().filename().c_str()), entry->path());
}

}  // namespace

AllThreadTimes thread_times() {
  AllThreadTimes times;
  for_own_threads([&](int number, const std::filesystem::path& folder) {
    ThreadTimes thread;
    if (std::ifstream(folder / "schedstat") >> thread.running >> thread.delayed) times[number] = thread;
  });
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

int64_t other_ready_threads() {
  int64_t ready = 0;
  std::string load, line;
  // "0.20 0.18 0.12 3/78 1234": three averages, ready / all threads, and the last process number
  if (!(std::ifstream("/proc/loadavg") >> load >> load >> load >> ready)) return 0;
  for_own_threads([&](int, const std::filesystem::path& folder) {
    // "1234 (name) R ...": the name may hold any character
    std::ifstream file(folder / "stat");
    if (!std::getline(file, line)) return;
    const size_t name_end = line.rfind(')');
    if (name_end != std::string::npos && line.compare(name_end, 3, ") R") == 0) --ready;
  });
  return std::max<int64_t>(ready, 0);
}

bool CrowdJudge::update(int64_t others, int64_t processors) {
  average_ += kNewest * (static_cast<double>(others) - average_);
  const double share = average_ / static_cast<double>(std::max<int64_t>(processors, 1));
  crowded_ = share >= (crowded_ ? kSpacious : kCrowded);
  has_others_ = average_ >= (has_others_ ? kGone : kPresent);
  return crowded_;
}

}  // namespace sparsight::cpu
