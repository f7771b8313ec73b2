#include "sparsight/kernels/experts/packed_tiles.h"

#include <algorithm>
#include <vector>

#include "sparsight/kernels/experts/expert_rows.h"
#include "sparsight/kernels/gemm/amx.h"
#include "sparsight/kernels/routing/combine_parts.h"
#include "sparsight/kernels/threads/tasks.h"

namespace sparsight::cpu {
namespace {

// Scratch of each thread.
struct TileScratch {
  Workspace rows, active, constants;
};
TileScratch& tile_scratch() {
  thread_local TileScratch scratch;
  return scratch;
}

// Biases of columns, with zeros for padding. Null stays null.
const float* padded_copy(const float* from, int64_t columns, int64_t padded, float* to) {
  if (!from) return nullptr;
  std::copy_n(from, columns, to);
  std::fill_n(to + columns, padded - columns, 0.0f);
  return to;
}

TileRows space_for(int64_t count, int64_t columns, Workspace& tiles) {
  TileRows rows{count, columns};
  rows.tiles = reinterpret_cast<char*>(tiles.floats(rows.bytes() / 4));
  return rows;
}

}  // namespace

void packed_tiles_forward(Threads& threads, const ExpertRowNumbers& rows, const StoredExperts& experts,
                          const float* tokens, Activation activation, const float* residual, float* out) {
  const Kernels& kernel = kernels();
  const PackedLayout& layout = experts.layout;
  const int64_t width = layout.width, hidden = layout.hidden, wide = layout.padded(layout.width);
  const int64_t count = experts.shape.rows;
  const Plan plan = make_plan(rows.offset, experts.shape.experts, layout.chunks(), kernel.task_rows, threads.inside());
  const float *b1 = experts.b1, *b2 = experts.b2;
  const char* weights = static_cast<const char*>(experts.panels);
  const auto task_weights = [&](const Task& task) { return weights + task.expert * layout.expert_bytes(); };
  float* const row_out = row_results().floats(plan.parts * count * wide);

  run_tasks(threads, plan.size(), [&](int64_t number, const auto& claim) {
    const Task& task = plan.tasks[static_cast<size_t>(number)];
    TileScratch& scratch = tile_scratch();
    const TileRegisters registers;
    const TileRows in = space_for(task.count, wide, scratch.rows);
    for (int64_t i = 0; i < task.count; ++i)
      put_tile_row(in, i, tokens + rows.map.row_token[task.first + i] * width, width);
    float* const constants = scratch.constants.floats(wide + kBlock);
    TileGemm down;
    down.columns = wide;
    const float* const bias2 = padded_copy(b2 ? b2 + task.expert * width : nullptr, width, wide, constants);

    for (int64_t c = task.chunk; c < task.chunk_end; ++c) {
      const int64_t columns = layout.chunk_columns(c), padded = layout.padded(columns);
      const int64_t first = task.expert * hidden + c * kBlock;
      const TileRows active = space_for(task.count, padded, scratch.active);
      TileGemm up;
      up.a = in;
      up.b = task_weights(task) + layout.first_weights(c);
      up.columns = padded;
      up.bias = padded_copy(b1 ? b1 + first : nullptr, columns, padded, constants + wide);
      up.prefetch = task_weights(task) + layout.second_weights(c);
      tile_gemm_activation(up, activation, kernel, active);

      down.a = active;
      down.b = up.prefetch;
      down.bias = c == 0 ? bias2 : nullptr;
      down.prefetch = nullptr;
      if (c + 1 < task.chunk_end) {
        down.prefetch = task_weights(task) + layout.first_weights(c + 1);
      } else if (const Task* upcoming = plan.find(claim())) {
        down.prefetch = task_weights(*upcoming) + layout.first_weights(upcoming->chunk);
      }
      tile_gemm(down, c > task.chunk, row_out + (task.part * count + task.first) * wide, wide);
    }
  });

  combine_parts(threads, rows.map, rows.gate, {row_out, wide, plan.parts, width}, out,
                {.residual = residual, .width = width});
}

}  // namespace sparsight::cpu
