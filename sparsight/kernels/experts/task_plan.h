// How the work of a layer's experts is split into tasks. The order of sums follows from the numbers of rows alone, so
// that results do not depend on the number of threads. Letters: moe/axes.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sparsight/kernels/memory/scratch.h"

namespace sparsight::cpu {

// Rows first .. first + count of one expert, and chunks chunk .. chunk_end of its hidden layer, which begin with part
// `part`.
struct Task {
  int64_t expert, first, count, part, chunk, chunk_end;
};

struct Plan {
  std::pmr::vector<Task> tasks{scratch()};
  int64_t parts = 1;  // of the hidden layer; each gives a partial result for each row
  int64_t chunks = 1;

  int64_t first_chunk(int64_t part) const { return chunks * part / parts; }
  int64_t chunk_part(int64_t chunk) const { return ((chunk + 1) * parts - 1) / chunks; }
  int64_t size() const { return static_cast<int64_t>(tasks.size()); }
  // Null past the last one.
  const Task* find(int64_t number) const { return number < size() ? &tasks[static_cast<size_t>(number)] : nullptr; }
};

// One task per group of rows and part. offset: [E+1]; chunks: of the hidden layer, at least one; max_rows: per task;
// alone: the tasks run on one thread, as where threads have rows of their own (ops/data_parallel.h), in a single part.
Plan make_plan(const int64_t* offset, int64_t experts, int64_t chunks, int64_t max_rows, bool alone);

// Joins the parts of memory-bound tasks with the same rows into as few tasks as keep `threads` threads evenly busy:
// longer rows of W1 are read faster.
void join_parts(Plan& plan, int64_t threads);

// Splits the rows of tasks if there are fewer tasks than threads. Only for products whose bits do not depend on how
// many rows are multiplied together (kernels.h, Gemm): those with packed weights.
void split_rows(Plan& plan, int64_t threads);

}  // namespace sparsight::cpu
