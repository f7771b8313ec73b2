// Tasks of kernels on torch's threads.
#pragma once

#include "sparsight/kernels/threads/tasks.h"
#include "sparsight/ops/torch_threads.h"

namespace sparsight::cpu {

inline int64_t pieces_for_all_threads(int64_t tasks) { return pieces_for_all_threads(torch_threads(), tasks); }

template <class Body>
void run_tasks(int64_t count, const Body& body) {
  run_tasks(torch_threads(), count, body);
}

template <class Body>
void run_ranges(int64_t count, int64_t grain, const Body& body) {
  run_ranges(torch_threads(), count, grain, body);
}

}  // namespace sparsight::cpu
