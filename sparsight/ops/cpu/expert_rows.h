// Shared by the forward and the backward pass of experts: sizes, and rows of tokens in the layout of the kernels.
#pragma once

#include <algorithm>

#include "sparsight/ops/cpu/arena.h"
#include "sparsight/ops/cpu/kernels.h"
#include "sparsight/ops/cpu/task_plan.h"
#include "sparsight/ops/cpu/weight_view.h"
#include "sparsight/ops/cpu/workspace.h"
#include "sparsight/ops/expert_mlp.h"

namespace sparsight::cpu {

struct MlpShape {
  int64_t experts, width, hidden, rows;  // E, D, F, R
  int64_t width_blocks() const { return blocks_of(width); }
  int64_t chunks() const { return blocks_of(hidden); }
  int64_t chunk_columns(int64_t chunk, int64_t chunks = 1) const {
    return std::min(chunks * kBlock, hidden - chunk * kBlock);
  }
};
inline MlpShape shape_of(const ExpertRows& rows, const ExpertMlpWeights& w) {
  return {w.w1.size(0), w.w1.size(1), w.w1.size(2), rows.map.row_token.size(0)};
}

// A new tensor in the same layout.
inline at::Tensor empty_weights_like(const at::Tensor& w) {
  return w.is_contiguous() ? empty_from_arena(w.sizes()) : empty_from_arena(w.mT().sizes()).mT();
}

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
    for (int64_t b = 0; b < blocks_of(width); ++b)
      std::copy_n(from + b * kBlock, std::min(kBlock, width - b * kBlock), to.block(b) + i * kBlockLd);
  }
}

// Applies the dropout of a task's rows, if there is any, to `columns` columns of the hidden layer from `first` on,
// which is a multiple of 8.
inline void drop_rows(const Kernels& kernel, const DropoutMask& dropout, const Task& task, int64_t first,
                      int64_t columns, float* block) {
  if (!dropout.defined()) return;
  const int64_t bytes = dropout.bits.size(1);
  const uint8_t* const bits = dropout.bits.const_data_ptr<uint8_t>() + task.first * bytes + first / 8;
  for (int64_t r = 0; r < task.count; ++r) kernel.drop(bits + r * bytes, dropout.scale, block + r * kBlockLd, columns);
}

// Results of rows, [parts,R,D], before they are combined: scratch of the calling thread, used by the forward and the
// backward pass in turn.
inline Workspace& row_results() {
  thread_local Workspace scratch;
  return scratch;
}

inline const float* floats_of(const at::Tensor& x) { return x.defined() ? x.const_data_ptr<float>() : nullptr; }
inline at::Tensor float_gate(const ExpertRows& rows) {
  return rows.gate.defined() ? rows.gate.to(at::kFloat).contiguous() : rows.gate;
}

}  // namespace sparsight::cpu
