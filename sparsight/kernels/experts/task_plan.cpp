#include "sparsight/kernels/experts/task_plan.h"

#include <algorithm>
#include <tuple>

namespace sparsight::cpu {
namespace {

constexpr int64_t kFewTasks = 32;        // with fewer groups of rows than this, the hidden layer is split too
constexpr int64_t kMemoryBoundRows = 8;  // up to this many rows a task is memory-bound
constexpr int64_t kSplitRows = 16;       // at least so many rows of a task that is split
constexpr int64_t kManyTasks = 4;        // tasks per thread that keep all threads about equally busy

// The largest first, so that no thread is left with a large one at the end.
void sort_by_size(std::pmr::vector<Task>& tasks) {
  std::ranges::sort(tasks, {}, [](const Task& task) {
    const int64_t size = std::max(task.count, kMemoryBoundRows) * (task.chunk_end - task.chunk);
    return std::tuple(-size, -task.count, task.first, task.part);
  });
}

}  // namespace

Plan make_plan(const int64_t* offset, int64_t experts, int64_t chunks, int64_t max_rows, bool alone) {
  int64_t blocks = 0;
  for (int64_t e = 0; e < experts; ++e) blocks += (offset[e + 1] - offset[e] + max_rows - 1) / max_rows;
  Plan plan{.chunks = chunks};
  const int64_t wanted = alone ? 1 : kFewTasks;
  if (blocks > 0) plan.parts = std::clamp<int64_t>((wanted + blocks - 1) / blocks, 1, chunks);
  plan.tasks.reserve(static_cast<size_t>(blocks * plan.parts));
  for (int64_t e = 0; e < experts; ++e) {
    const int64_t count = offset[e + 1] - offset[e], pieces = (count + max_rows - 1) / max_rows;
    for (int64_t p = 0; p < pieces; ++p) {
      const int64_t first = offset[e] + count * p / pieces, end = offset[e] + count * (p + 1) / pieces;
      for (int64_t part = 0; part < plan.parts; ++part)
        plan.tasks.push_back({e, first, end - first, part, plan.first_chunk(part), plan.first_chunk(part + 1)});
    }
  }
  sort_by_size(plan.tasks);
  return plan;
}

void join_parts(Plan& plan, int64_t threads) {
  if (plan.parts == 1) return;
  const int64_t blocks = plan.size() / plan.parts;
  const auto busy = [&](int64_t pieces) {
    return blocks * pieces % threads == 0 || blocks * pieces >= kManyTasks * threads;
  };
  int64_t pieces = 1;  // tasks per group of rows
  while (pieces < plan.parts && !busy(pieces)) ++pieces;
  const auto first_part = [&](int64_t piece) { return plan.parts * piece / pieces; };
  std::pmr::vector<Task> joined(scratch());
  for (Task task : plan.tasks) {
    if (task.count <= kMemoryBoundRows) {
      const int64_t piece = (task.part * pieces + plan.parts - 1) / plan.parts;
      if (first_part(piece) != task.part) continue;  // in an earlier part's task
      task.chunk_end = plan.first_chunk(first_part(piece + 1));
    }
    joined.push_back(task);
  }
  sort_by_size(joined);
  plan.tasks = std::move(joined);
}

void split_rows(Plan& plan, int64_t threads) {
  if (plan.size() == 0 || plan.size() >= threads) return;
  const int64_t wanted = (threads + plan.size() - 1) / plan.size();
  std::pmr::vector<Task> split(scratch());
  for (const Task& task : plan.tasks) {
    const int64_t pieces = std::clamp<int64_t>(task.count / kSplitRows, 1, wanted);
    for (int64_t piece = 0; piece < pieces; ++piece) {
      const int64_t first = task.count * piece / pieces;
      Task some = task;
      some.first = task.first + first, some.count = task.count * (piece + 1) / pieces - first;
      split.push_back(some);
    }
  }
  sort_by_size(split);
  plan.tasks = std::move(split);
}

}  // namespace sparsight::cpu
