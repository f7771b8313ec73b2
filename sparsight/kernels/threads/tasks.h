// Runs tasks on several threads: each thread takes the next task when it has finished its last.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "sparsight/kernels/threads/threads.h"

namespace sparsight::cpu {

// Into how many pieces each of `tasks` tasks is split to have two for each thread.
inline int64_t pieces_for_all_threads(const Threads& threads, int64_t tasks) {
  return tasks > 0 ? (2 * threads.count() + tasks - 1) / tasks : 1;
}

// Calls body(task, claim) for each task 0 .. count-1. claim() takes this thread's next task early, so that its data can
// be prefetched, and returns its number (count or more: none).
template <class Body>
void run_tasks(Threads& threads, int64_t count, const Body& body) {
  std::atomic<int64_t> next{0};
  threads.run(std::min(threads.count(), count), [&] {
    for (int64_t task = next++; task < count;) {
      int64_t claimed = -1;
      const auto claim = [&] { return claimed >= 0 ? claimed : claimed = next++; };
      body(task, claim);
      task = claim();
    }
  });
}

// Calls body(begin, end) for parts of 0 .. count of about the same size, at least `grain` unless there are fewer.
template <class Body>
void run_ranges(Threads& threads, int64_t count, int64_t grain, const Body& body) {
  const int64_t parts = std::min<int64_t>(threads.count(), (count + grain - 1) / grain);
  run_tasks(threads, parts, [&](int64_t part, const auto&) { body(count * part / parts, count * (part + 1) / parts); });
}

}  // namespace sparsight::cpu
