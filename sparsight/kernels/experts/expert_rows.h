// Shared by the forward and the backward pass of experts: rows of tokens in the layout of the kernels.
#pragma once

#include <algorithm>

#include "sparsight/kernels/experts/expert_mlp.h"
#include "sparsight/kernels/experts/task_plan.h"
#include "sparsight/kernels/kernels.h"
#include "sparsight/kernels/workspace.h"

namespace sparsight::cpu {

// Chunks of the hidden layer that are computed at a time: four with small M, since longer rows of W1 are read faster.
inline int64_t chunks_at_once(const Task& task) { return task.count <= 64 ? 4 : 1; }

// Rows of a matrix in blocks of its columns (kernels.h), with `stride` elements from one block to the next.
struct RowBlocks {
  float* data = nullptr;
  int64_t stride = 0;
  float* block(int64_t number) const { return data + number * stride; }
};
inline RowBlocks blocks_in(Workspace& space, int64_t blocks, int64_t rows) {
  return {space.floats(blocks * rows * kBlockLd), rows * kBlockLd};
}

inline void gather(const float* tokens, const int64_t* row_token, const Task& task, int64_t width, RowBlocks to) {
  for (int64_t i = 0; i < task.count; ++i) {
    const float* from = tokens + row_token[task.first + i] * width;
    for (int64_t b = 0; b < count_blocks(width); ++b)
      std::copy_n(from + b * kBlock, std::min(kBlock, width - b * kBlock), to.block(b) + i * kBlockLd);
  }
}

// Applies the dropout of a task's rows, if there is any, to `columns` columns of the hidden layer from `first` on,
// which is a multiple of 8.
inline void drop_rows(const Kernels& kernel, const ExpertRowNumbers& rows, const Task& task, int64_t hidden,
                      int64_t first, int64_t columns, float* block) {
  if (!rows.dropout) return;
  const int64_t bytes = (hidden + 7) / 8;
  const uint8_t* const bits = rows.dropout + task.first * bytes + first / 8;
  for (int64_t r = 0; r < task.count; ++r)
    kernel.drop(bits + r * bytes, rows.dropout_scale, block + r * kBlockLd, columns);
}

// Results of rows, [parts,R,D], before they are combined: scratch of the calling thread, used by the forward and the
// backward pass in turn.
inline Workspace& row_results() {
  thread_local Workspace scratch;
  return scratch;
}

}  // namespace sparsight::cpu
