// Runs tasks on torch's threads: each thread takes the next one when it is done with its last.
#pragma once

#include <atomic>

#include <ATen/Parallel.h>

namespace sparsight::cpu {

// body(task, peek) for each task 0 .. count-1; peek() tells the task that is likely to come next on this thread.
template <class Body>
void run_tasks(int64_t count, const Body& body) {
  std::atomic<int64_t> next{0};
  const int64_t threads = std::min<int64_t>(at::get_num_threads(), count);
  at::parallel_for(0, threads, 1, [&](int64_t, int64_t) {
    for (int64_t task = next++; task < count; task = next++) body(task, [&] { return next.load(); });
  });
}

}  // namespace sparsight::cpu
