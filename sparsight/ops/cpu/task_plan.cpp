#include "sparsight/ops/cpu/task_plan.h"

#include <algorithm>
#include <functional>

namespace sparsight::cpu {
namespace {

constexpr int64_t kFewTasks = 32;  // with fewer tasks than this, each is cut along the hidden layer too

}  // namespace

Plan make_plan(const int64_t* offset, int64_t experts, int64_t chunks, int64_t most_rows) {
  int64_t blocks = 0;
  for (int64_t e = 0; e < experts; ++e) blocks += (offset[e + 1] - offset[e] + most_rows - 1) / most_rows;
  Plan plan;
  if (blocks > 0) plan.parts = std::clamp<int64_t>((kFewTasks + blocks - 1) / blocks, 1, chunks);
  plan.tasks.reserve(static_cast<size_t>(blocks * plan.parts));
  for (int64_t e = 0; e < experts; ++e) {
    const int64_t count = offset[e + 1] - offset[e], pieces = (count + most_rows - 1) / most_rows;
    for (int64_t p = 0; p < pieces; ++p) {
      const int64_t first = offset[e] + count * p / pieces, end = offset[e] + count * (p + 1) / pieces;
      for (int64_t part = 0; part < plan.parts; ++part)
        plan.tasks.push_back(
            {e, first, end - first, part, chunks * part / plan.parts, chunks * (part + 1) / plan.parts});
    }
  }
  // The largest first: then no thread is left with a large one at the end.
  std::ranges::stable_sort(plan.tasks, std::greater{}, &Task::count);
  return plan;
}

}  // namespace sparsight::cpu
