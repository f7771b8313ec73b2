#include "sparsight/ops/torch_threads.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <semaphore>
#include <system_error>
#include <thread>

#include <ATen/Parallel.h>
#if defined(_OPENMP)
#include <omp.h>
#endif

#include "sparsight/kernels/threads/machine_load.h"
#include "sparsight/kernels/threads/task_team.h"

namespace sparsight::cpu {
namespace {

std::atomic<bool> asleep{false};

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

// Starts or ends the idle team.
void adapt() {
  static auto* idle = new std::unique_ptr<IdleTeam>;  // never ends, as the thread that watches does not
  const bool busy = machine_is_busy() && at::get_num_threads() > 1;
  if (!busy || (*idle && (*idle)->size < team_size())) idle->reset();
  try {
    if (busy && !*idle) *idle = std::make_unique<IdleTeam>(team_size());
  } catch (const std::system_error&) {  // no more threads allowed: waiting stays as it is
  }
  asleep = *idle != nullptr;
}

void start() {
#if defined(_OPENMP)
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT")) return;
  watch_machine();
  call_after_each_look(adapt);
#endif
}

class TorchThreads final : public Threads {
 public:
  int64_t count() const override { return at::get_num_threads(); }
  bool inside() const override { return at::in_parallel_region(); }
  void run(int64_t threads, FunctionRef<void()> work) override {
    if (threads > 1 && asleep && !inside()) return team_.run(threads, work, machine_is_crowded());
    at::parallel_for(0, threads, 1, [&](int64_t, int64_t) { work(); });
  }

 private:
  TaskTeam team_;
};

}  // namespace

Threads& torch_threads() {
  static auto* threads = new TorchThreads;  // never ends, as their team does not
  adapt_thread_waiting();
  return *threads;
}

void adapt_thread_waiting() {
  static const bool started = (start(), true);
  static_cast<void>(started);
}

}  // namespace sparsight::cpu
