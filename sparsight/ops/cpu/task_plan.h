// How the work of a layer's experts is cut into tasks: by the numbers of rows alone, so that results do not depend on
// the number of threads. Letters: moe/axes.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sparsight::cpu {

// Rows first .. first + count of one expert, and blocks chunk .. chunk_end of its hidden layer, the part `part` of it.
struct Task {
  int64_t expert, first, count, part, chunk, chunk_end;
};

struct Plan {
  std::vector<Task> tasks;
  int64_t parts = 1;  // into which the hidden layer is cut; each gives a partial result of each row

  int64_t size() const { return static_cast<int64_t>(tasks.size()); }
  // Null past the last one.
  const Task* find(int64_t number) const { return number < size() ? &tasks[static_cast<size_t>(number)] : nullptr; }
};

// offset: [E+1]; chunks: blocks of the hidden layer; most_rows: of a task.
Plan make_plan(const int64_t* offset, int64_t experts, int64_t chunks, int64_t most_rows);

}  // namespace sparsight::cpu
