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
  const int64_t width = layout.width, wide = layout.padded(layout.width);
  const int64_t count = experts.shape.rows;
  const Plan plan = make_plan(rows.offset, experts.shape.experts, layout.chunks(), kernel.task_rows, threads.inside());
  const auto weights = [](const void* panels) { return static_cast<const char*>(panels); };
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
    const float* const bias2 = padded_copy(experts.second_bias(task.expert), width, wide, constants);

    for (int64_t c = task.chunk; c < task.chunk_end; ++c) {
      const int64_t columns = layout.chunk_columns(c), padded = layout.padded(columns);
      const TileRows active = space_for(task.count, padded, scratch.active);
      TileGemm up;
      up.a = in;
      up.b = weights(experts.first(task.expert, c));
      up.columns = padded;
      up.bias = padded_copy(experts.first_bias(task.expert, c), columns, padded, constants + wide);
      up.prefetch = weights(experts.second(task.expert, c));
      tile_gemm_activation(up, activation, kernel, active);

      down.a = active;
      down.b = up.prefetch;
      down.bias = c == 0 ? bias2 : nullptr;
      down.prefetch = nullptr;
      if (c + 1 < task.chunk_end) {
        down.prefetch = weights(experts.first(task.expert, c + 1));
      } else if (const Task* upcoming = plan.find(claim())) {
        down.prefetch = weights(experts.first(upcoming->expert, upcoming->chunk));
      }
      tile_gemm(down, c > task.chunk, row_out + (task.part * count + task.first) * wide, wide);
    }
  });

  combine_parts(threads, rows.map, rows.gate, {row_out, wide, plan.parts, width}, out,
                {.residual = residual, .width = width});
}

}  // namespace sparsight::cpu
