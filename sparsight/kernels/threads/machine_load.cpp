#include "sparsight/kernels/threads/machine_load.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

#include "sparsight/core/background_thread.h"
#include "sparsight/kernels/threads/contention.h"

namespace sparsight::cpu {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPeriod{50};
constexpr int kMaxCost = 100;  // looking takes at most this part of the time: 1 %

std::atomic<bool> busy{false}, crowded{false};

class Watcher {
 public:
  void look() {
    const std::lock_guard lock(mutex_);
    const bool delayed = contention_.update(thread_times());
    if (!delayed) crowd_ = {};
    crowded = delayed && crowd_.update(other_ready_threads(), sysconf(_SC_NPROCESSORS_ONLN));
    busy = delayed && crowd_.has_others();
    if (then_) then_();
  }

  void call_after(std::function<void()> body) {
    const std::lock_guard lock(mutex_);
    then_ = std::move(body);
    then_();
  }

  void watch() {
    for (Clock::duration period = kPeriod;;) {
      std::this_thread::sleep_for(period);
      const Clock::time_point begin = Clock::now();
      look();
      period = std::max<Clock::duration>(kPeriod, kMaxCost * (Clock::now() - begin));
    }
  }

 private:
  std::mutex mutex_;
  ContentionJudge contention_;
  CrowdJudge crowd_;
  std::function<void()> then_;
};

Watcher& watcher() {
  static auto* watcher = new Watcher;  // never ends, so that it may outlive what is destroyed at exit
  return *watcher;
}

bool start() {
  if (thread_times().empty()) return false;
  watcher().look();  // the times since the program began say whether the machine is busy
  return start_background_thread([] { watcher().watch(); });
}

}  // namespace

void watch_machine() {
  static const bool started = start();
  static_cast<void>(started);
}

bool machine_is_busy() { return busy; }
bool machine_is_crowded() { return crowded; }
void call_after_each_look(std::function<void()> body) { watcher().call_after(std::move(body)); }

}  // namespace sparsight::cpu
