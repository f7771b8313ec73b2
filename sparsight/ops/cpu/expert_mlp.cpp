#include "sparsight/ops/cpu/expert_mlp.h"

#include "sparsight/ops/cpu/combine_parts.h"
#include "sparsight/ops/cpu/expert_rows.h"
#include "sparsight/ops/cpu/pool.h"
#include "sparsight/ops/cpu/tasks.h"

namespace sparsight::cpu {
namespace {

// What each thread works in.
struct ForwardSpace {
  Workspace in, hidden, panel;
};
ForwardSpace& forward_space() {
  thread_local ForwardSpace mine;
  return mine;
}

// Weights as the kernels read them.
struct StoredWeights {
  MlpShape shape;
  const float *b1, *b2;                      // may be null
  const float *w1 = nullptr, *w2 = nullptr;  // [E,D,F], [E,F,D]; or
  const void* panels = nullptr;              // all weights in `layout`
  HeldLayout layout{};
  const float *scale1 = nullptr, *scale2 = nullptr;  // of int8

  WeightType type() const { return panels ? layout.type : WeightType::fp32; }
  // W1[:, columns] and W2[columns, :] of an expert, from a chunk of the hidden layer on
  const void* first(int64_t expert, int64_t chunk) const {
    return panels ? at(panels, expert * layout.expert_bytes() + layout.first_weights(chunk))
                  : w1 + expert * shape.width * shape.hidden + chunk * kBlock;
  }
  const void* second(int64_t expert, int64_t chunk) const {
    return panels ? at(panels, expert * layout.expert_bytes() + layout.second_weights(chunk))
                  : w2 + (expert * shape.hidden + chunk * kBlock) * shape.width;
  }

 private:
  static const void* at(const void* weights, int64_t byte) { return static_cast<const char*>(weights) + byte; }
};

at::Tensor run_forward(const at::Tensor& tokens, const ExpertRows& rows, const StoredWeights& w, Activation activation,
                       at::Tensor* before) {
  const Kernels& kernel = kernels();
  const MlpShape shape = w.shape;
  const int64_t width = shape.width, hidden = shape.hidden;
  const Plan plan = make_plan(rows.offsets.const_data_ptr<int64_t>(), shape.experts, shape.chunks(), kernel.task_rows);
  const int64_t* row_token = rows.map.row_token.const_data_ptr<int64_t>();
  const float *x = floats_of(tokens), *b1 = w.b1, *b2 = w.b2;
  if (before) *before = empty_from_pool({shape.rows, hidden});
  float* const kept = before ? before->data_ptr<float>() : nullptr;
  float* const row_out = row_results().floats(plan.parts * shape.rows * width);

  run_tasks(plan.size(), [&](int64_t number, const auto& claim) {
    const Task& task = plan.tasks[static_cast<size_t>(number)];
    ForwardSpace& mine = forward_space();
    const int64_t at_once = w.panels ? 1 : chunks_at_once(task);
    const RowBlocks in = blocks_in(mine.in, shape.width_blocks(), task.count);
    const RowBlocks middle = blocks_in(mine.hidden, at_once, task.count);
    float* panel = mine.panel.floats(kernel.panel_floats);
    gather(x, row_token, task, width, in);
    for (int64_t c = task.chunk; c < task.chunk_end; c += at_once) {
      const int64_t columns = shape.chunk_columns(c, std::min(at_once, task.chunk_end - c));
      Product up;
      up.m = task.count, up.n = columns, up.k = width;
      up.a = in.data, up.a_block = in.apart;
      up.b = w.first(task.expert, c), up.b_ld = hidden, up.b_type = w.type(), up.b_panels = w.panels != nullptr;
      up.b_scale = w.scale1 ? w.scale1 + task.expert * hidden + c * kBlock : nullptr;
      up.c = middle.data, up.c_ld = kBlockLd, up.c_block = middle.apart;
      up.bias = b1 ? b1 + task.expert * hidden + c * kBlock : nullptr;
      up.activates = true, up.activation = activation;
      if (kept) up.before = kept + task.first * hidden + c * kBlock, up.before_ld = hidden;
      up.next = w.second(task.expert, c);
      up.next_rows = columns, up.next_columns = width, up.next_ld = width;
      kernel.product(up, panel);

      Product down;
      down.m = task.count, down.n = width, down.k = columns;
      down.a = middle.data, down.a_block = middle.apart;
      down.b = up.next, down.b_ld = width, down.b_type = w.type(), down.b_panels = up.b_panels;
      down.b_scale = w.scale2 ? w.scale2 + task.expert * width : nullptr;
      down.c = row_out + (task.part * shape.rows + task.first) * width, down.c_ld = width;
      down.accumulate = c > task.chunk;
      down.bias = c == 0 && b2 ? b2 + task.expert * width : nullptr;
      down.next_rows = width, down.next_columns = columns, down.next_ld = hidden;
      if (c + at_once < task.chunk_end) {
        down.next = w.first(task.expert, c + at_once);
      } else if (const Task* soon = plan.find(claim())) {
        down.next = w.first(soon->expert, soon->chunk);
      }
      kernel.product(down, panel);
    }
  });

  at::Tensor out = empty_from_pool({rows.map.tokens, width});
  const at::Tensor gate = float_gate(rows);
  combine_parts(kernel, rows.map, floats_of(gate), row_out, width, plan.parts, width, out.data_ptr<float>());
  return out;
}

}  // namespace

at::Tensor expert_mlp_forward(const at::Tensor& tokens, const ExpertRows& rows, const ExpertMlpWeights& w,
                              Activation activation, at::Tensor* before) {
  return run_forward(tokens, rows,
                     {.shape = shape_of(rows, w),
                      .b1 = floats_of(w.b1),
                      .b2 = floats_of(w.b2),
                      .w1 = floats_of(w.w1),
                      .w2 = floats_of(w.w2)},
                     activation, before);
}

at::Tensor held_experts_forward(const at::Tensor& tokens, const ExpertRows& rows, const HeldExperts& held,
                                const HeldLayout& layout, Activation activation) {
  const ExpertMlpWeights& w = held.weights;
  return run_forward(tokens, rows,
                     {.shape = {held.experts, held.width, held.hidden, rows.map.row_token.size(0)},
                      .b1 = floats_of(w.b1),
                      .b2 = floats_of(w.b2),
                      .panels = held.packed.const_data_ptr(),
                      .layout = layout,
                      .scale1 = floats_of(held.scale1),
                      .scale2 = floats_of(held.scale2)},
                     activation, nullptr);
}

}  // namespace sparsight::cpu
