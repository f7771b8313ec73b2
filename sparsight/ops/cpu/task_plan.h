// How the work of a layer's experts is cut into tasks. What is summed with what follows from the numbers of rows alone,
// so that results do not depend on the number of threads. Letters: moe/axes.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sparsight::cpu {

// Rows first .. first + count of one expert, and blocks chunk .. chunk_end of its hidden layer, from the part `part` of
// it on.
struct Task {
  int64_t expert, first, count, part, chunk, chunk_end;
};

struct Plan {
  std::vector<Task> tasks = {};
  int64_t parts = 1;  // into which the hidden layer is cut; each gives a partial result of each row
  int64_t chunks = 1;

  int64_t first_chunk(int64_t part) const { return chunks * part / parts; }
  int64_t part_of(int64_t chunk) const { return ((chunk + 1) * parts - 1) / chunks; }
  int64_t size() const { return static_cast<int64_t>(tasks.size()); }
  // Null past the last one.
  const Task* find(int64_t number) const { return number < size() ? &tasks[static_cast<size_t>(number)] : nullptr; }
};

// A task for each part. offset: [E+1]; chunks: blocks of the hidden layer, at least one; max_rows: of a task.
Plan make_plan(const int64_t* offset, int64_t experts, int64_t chunks, int64_t max_rows);

// Where rows are so few that tasks wait for weights, joins parts of the same rows to as few tasks as keep so many
// threads evenly busy: the longer the rows of W1 that a task reads, the sooner memory gives them.
void join_parts(Plan& plan, int64_t threads);

}  // namespace sparsight::cpu
