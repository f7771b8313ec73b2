#include "sparsight/ops/cpu/thread_waiting.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <semaphore>
#include <system_error>
#include <thread>

#include <ATen/Parallel.h>
#if defined(_OPENMP)
#include <omp.h>
#endif

#include "sparsight/core/background_thread.h"
#include "sparsight/ops/cpu/contention.h"

namespace sparsight::cpu {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPeriod{50};
constexpr int kMaxCost = 100;  // looking takes at most this part of the time: 1 %

std::atomic<bool> asleep{false}, paired{false};

// The idle team: `size` threads, of which one is a thread of its own that starts the others.
class IdleTeam {
 public:
  explicit IdleTeam(int size) : size(size), host_([this] { host(); }) { started_.acquire(); }
  ~IdleTeam() {
    stop_.release();
    host_.join();  // libgomp ends the others and no longer counts them
  }

  const int size;

 private:
  void host() {
#if defined(_OPENMP)
    std::atomic<int> threads{0};
#pragma omp parallel num_threads(size)
    ++threads;
#endif
    started_.release();
    stop_.acquire();
  }

  std::binary_semaphore started_{0}, stop_{0};
  std::thread host_;
};

// The size that makes torch's threads and these more than the cores.
int team_size() {
#if defined(_OPENMP)
  return std::max(2, omp_get_num_procs() - at::get_num_threads() + 2);
#else
  return 2;
#endif
}

class Watcher {
 public:
  void look() {
    const bool busy = judge_.update(thread_times()) && at::get_num_threads() > 1;
    if (!busy || (team_ && team_->size < team_size())) team_.reset();
    try {
      if (busy && !team_) team_ = std::make_unique<IdleTeam>(team_size());
    } catch (const std::system_error&) {  // no more threads allowed: waiting stays as it is
    }
    asleep = team_ != nullptr;
    if (!asleep) crowd_ = {};
    paired = asleep && crowd_.update(other_ready_threads(), sysconf(_SC_NPROCESSORS_ONLN));
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
  ContentionJudge judge_;
  CrowdJudge crowd_;
  std::unique_ptr<IdleTeam> team_;
};

void start() {
#if defined(_OPENMP)
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT") || thread_times().empty()) return;
  auto* watcher = new Watcher;  // never ends, so that it may outlive what is destroyed at exit
  watcher->look();              // the times since the program began say whether the machine is busy
  start_background_thread([watcher] { watcher->watch(); });
#endif
}

}  // namespace

void adapt_thread_waiting() {
  static const bool started = (start(), true);
  static_cast<void>(started);
}

bool threads_wait_asleep() { return asleep; }
bool threads_pair_up() { return paired; }

}  // namespace sparsight::cpu
