// Runs tasks on several threads, torch's unless other programs take the cores (task_team.h): each thread takes the next
// task when it has finished its last.
#pragma once

#include <algorithm>
#include <atomic>

#include <ATen/Parallel.h>

#include "sparsight/ops/cpu/task_team.h"
#include "sparsight/ops/cpu/thread_waiting.h"

namespace sparsight::cpu {

// Into how many pieces each of `tasks` tasks is split to have two for each thread.
inline int64_t pieces_for_all_threads(int64_t tasks) {
  return tasks > 0 ? (2 * at::get_num_threads() + tasks - 1) / tasks : 1;
}

// Calls body(task, claim) for each task 0 .. count-1. claim() takes this thread's next task early, so that its data can
// be prefetched, and returns its number (count or more: none).
template <class Body>
void run_tasks(int64_t count, const Body& body) {
  adapt_thread_waiting();
  std::atomic<int64_t> next{0};
  const auto work = [&] {
    for (int64_t task = next++; task < count;) {
      int64_t claimed = -1;
      const auto claim = [&] { return claimed >= 0 ? claimed : claimed = next++; };
      body(task, claim);
      task = claim();
    }
  };
  const int64_t threads = std::min<int64_t>(at::get_num_threads(), count);
  if (threads > 1 && threads_wait_asleep() && !at::in_parallel_region()) return run_on_team(threads, work);
  at::parallel_for(0, threads, 1, [&](int64_t, int64_t) { work(); });
}

// Calls body(begin, end) for parts of 0 .. count of about the same size, at least `grain` unless there are fewer.
template <class Body>
void run_ranges(int64_t count, int64_t grain, const Body& body) {
  const int64_t parts = std::min<int64_t>(at::get_num_threads(), (count + grain - 1) / grain);
  run_tasks(parts, [&](int64_t part, const auto&) { body(count * part / parts, count * (part + 1) / parts); });
}

}  // namespace sparsight::cpu
