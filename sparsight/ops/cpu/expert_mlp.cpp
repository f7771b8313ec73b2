#include "sparsight/ops/cpu/expert_mlp.h"

#include <algorithm>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "sparsight/ops/cpu/combine_parts.h"
#include "sparsight/ops/cpu/kernels.h"
#include "sparsight/ops/cpu/pool.h"
#include "sparsight/ops/cpu/task_plan.h"
#include "sparsight/ops/cpu/tasks.h"
#include "sparsight/ops/cpu/workspace.h"

namespace sparsight::cpu {
namespace {

struct Shape {
  int64_t experts, width, hidden, rows;  // E, D, F, R
  int64_t width_blocks() const { return blocks_of(width); }
  int64_t chunks() const { return blocks_of(hidden); }
  int64_t chunk_columns(int64_t chunk, int64_t chunks = 1) const {
    return std::min(chunks * kBlock, hidden - chunk * kBlock);
  }
};

// So many chunks of the hidden layer are computed at a time: four for few rows, since weights come faster from memory
// in longer pieces.
int64_t chunks_at_once(const Task& task) { return task.count <= 64 ? 4 : 1; }

Shape shape_of(const ExpertRows& rows, const ExpertMlpWeights& w) {
  return {w.w1.size(0), w.w1.size(1), w.w1.size(2), rows.map.row_token.size(0)};
}

// What each thread works in.
struct Scratch {
  Workspace rows, hidden, panel;
};
Scratch& scratch() {
  thread_local Scratch mine;
  return mine;
}

// What a call works in; belongs to the thread that calls.
struct CallSpace {
  Workspace out, in, grad, hidden, active, gate;
};
CallSpace& call_space() {
  thread_local CallSpace mine;
  return mine;
}

const float* data(const at::Tensor& x) { return x.defined() ? x.const_data_ptr<float>() : nullptr; }

// Rows of tokens into blocks: `to` has room for `rows` rows.
void gather(const float* tokens, const int64_t* row_token, const Task& task, int64_t width, float* to, int64_t rows) {
  for (int64_t i = 0; i < task.count; ++i) {
    const float* from = tokens + row_token[task.first + i] * width;
    for (int64_t c = 0; c < width; c += kBlock)
      std::copy_n(from + c, std::min(kBlock, width - c), to + c / kBlock * rows * kBlockLd + i * kBlockLd);
  }
}

at::Tensor float_gate(const ExpertRows& rows) {
  return rows.gate.defined() ? rows.gate.to(at::kFloat).contiguous() : rows.gate;
}

// Weights as the kernels read them.
struct StoredWeights {
  Shape shape;
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
  const Shape shape = w.shape;
  const int64_t width = shape.width, hidden = shape.hidden;
  const Plan plan = make_plan(rows.offsets.const_data_ptr<int64_t>(), shape.experts, shape.chunks(), kernel.task_rows);
  const int64_t* row_token = rows.map.row_token.const_data_ptr<int64_t>();
  const float *x = data(tokens), *b1 = w.b1, *b2 = w.b2;
  if (before) *before = empty_from_pool({shape.rows, hidden});
  float* const kept = before ? before->data_ptr<float>() : nullptr;
  float* const row_out = call_space().out.floats(plan.parts * shape.rows * width);

  run_tasks(static_cast<int64_t>(plan.tasks.size()), [&](int64_t number, const auto& claim) {
    const Task& task = plan.tasks[static_cast<size_t>(number)];
    Scratch& mine = scratch();
    float* in = mine.rows.floats(shape.width_blocks() * task.count * kBlockLd);
    const int64_t at_once = w.panels ? 1 : chunks_at_once(task), block = task.count * kBlockLd;
    float* middle = mine.hidden.floats(at_once * block);
    float* panel = mine.panel.floats(kernel.panel_floats);
    gather(x, row_token, task, width, in, task.count);
    for (int64_t c = task.chunk; c < task.chunk_end; c += at_once) {
      const int64_t columns = shape.chunk_columns(c, std::min(at_once, task.chunk_end - c));
      Product up;
      up.m = task.count, up.n = columns, up.k = width;
      up.a = in, up.a_block = block;
      up.b = w.first(task.expert, c), up.b_ld = hidden, up.b_type = w.type(), up.b_panels = w.panels != nullptr;
      up.b_scale = w.scale1 ? w.scale1 + task.expert * hidden + c * kBlock : nullptr;
      up.c = middle, up.c_ld = kBlockLd, up.c_block = block;
      up.bias = b1 ? b1 + task.expert * hidden + c * kBlock : nullptr;
      up.activation = static_cast<int>(activation);
      if (kept) up.before = kept + task.first * hidden + c * kBlock, up.before_ld = hidden;
      up.next = w.second(task.expert, c);
      up.next_rows = columns, up.next_columns = width, up.next_ld = width;
      kernel.product(up, panel);

      Product down;
      down.m = task.count, down.n = width, down.k = columns;
      down.a = middle, down.a_block = block;
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
  combine_parts(kernel, rows.map, data(gate), row_out, width, plan.parts, width, out.data_ptr<float>());
  return out;
}

}  // namespace

at::Tensor expert_mlp_forward(const at::Tensor& tokens, const ExpertRows& rows, const ExpertMlpWeights& w,
                              Activation activation, at::Tensor* before) {
  return run_forward(
      tokens, rows,
      {.shape = shape_of(rows, w), .b1 = data(w.b1), .b2 = data(w.b2), .w1 = data(w.w1), .w2 = data(w.w2)}, activation,
      before);
}

at::Tensor held_experts_forward(const at::Tensor& tokens, const ExpertRows& rows, const HeldExperts& held,
                                const HeldLayout& layout, Activation activation) {
  const ExpertMlpWeights& w = held.weights;
  return run_forward(tokens, rows,
                     {.shape = {held.experts, held.width, held.hidden, rows.map.row_token.size(0)},
                      .b1 = data(w.b1),
                      .b2 = data(w.b2),
                      .panels = held.packed.const_data_ptr(),
                      .layout = layout,
                      .scale1 = data(held.scale1),
                      .scale2 = data(held.scale2)},
                     activation, nullptr);
}

ExpertMlpGradients expert_mlp_backward(const at::Tensor& grad, const at::Tensor& tokens, const ExpertRows& rows,
                                       const ExpertMlpWeights& w, Activation activation, const at::Tensor& before,
                                       ExpertMlpNeeds needs) {
  const Kernels& kernel = kernels();
  const Shape shape = shape_of(rows, w);
  const int64_t width = shape.width, hidden = shape.hidden, count = shape.rows, chunks = shape.chunks();
  const int64_t* offset = rows.offsets.const_data_ptr<int64_t>();
  const int64_t* row_token = rows.map.row_token.const_data_ptr<int64_t>();
  const Plan plan = make_plan(offset, shape.experts, shape.chunks(), kernel.task_rows);
  const at::Tensor gates = float_gate(rows);
  const float *x = data(tokens), *g = data(grad), *gate = data(gates), *kept = data(before);
  const float *w1 = data(w.w1), *b1 = data(w.b1), *w2 = data(w.w2), *b2 = data(w.b2);

  // Blocks of rows, for all rows: what goes in, the gradient of what comes out, the gradient of the hidden layer, and
  // the active hidden layer times the gate.
  CallSpace& space = call_space();
  const int64_t block = count * kBlockLd;
  float* const in = space.in.floats(shape.width_blocks() * block);
  float* const out_grad = space.grad.floats(shape.width_blocks() * block);
  float* const hidden_grad = space.hidden.floats(chunks * block);
  float* const active = space.active.floats(chunks * block);
  float* const rows_grad = needs.tokens ? space.out.floats(plan.parts * count * width) : nullptr;
  float* const gate_grad = space.gate.floats(chunks * count);

  run_tasks(static_cast<int64_t>(plan.tasks.size()), [&](int64_t number, const auto& claim) {
    const Task& task = plan.tasks[static_cast<size_t>(number)];
    Scratch& mine = scratch();
    float* panel = mine.panel.floats(kernel.panel_floats);
    // A task that shares its rows with others gathers them for itself; one of them leaves them for the second round.
    const bool own = task.chunk > 0;
    float* my_grad =
        own ? mine.rows.floats(shape.width_blocks() * task.count * kBlockLd) : out_grad + task.first * kBlockLd;
    const int64_t my_block = own ? task.count * kBlockLd : block;
    gather(g, row_token, task, width, my_grad, my_block / kBlockLd);
    if (!own) gather(x, row_token, task, width, in + task.first * kBlockLd, count);
    const float *first = w1 + task.expert * width * hidden, *second = w2 + task.expert * hidden * width;
    const int64_t at_once = chunks_at_once(task);
    for (int64_t c = task.chunk; c < task.chunk_end; c += at_once) {
      const int64_t columns = shape.chunk_columns(c, std::min(at_once, task.chunk_end - c));
      float* const mid_grad = hidden_grad + c * block + task.first * kBlockLd;
      float* const mid = active + c * block + task.first * kBlockLd;
      if (!kept) {
        float* my_rows =
            own ? mine.hidden.floats(shape.width_blocks() * task.count * kBlockLd) : in + task.first * kBlockLd;
        if (own) gather(x, row_token, task, width, my_rows, task.count);
        Product up;
        up.m = task.count, up.n = columns, up.k = width;
        up.a = my_rows, up.a_block = my_block;
        up.b = first + c * kBlock, up.b_ld = hidden;
        up.c = mid, up.c_ld = kBlockLd, up.c_block = block;
        up.bias = b1 ? b1 + task.expert * hidden + c * kBlock : nullptr;
        kernel.product(up, panel);
      }
      Product back;
      back.m = task.count, back.n = columns, back.k = width;
      back.a = my_grad, back.a_block = my_block;
      back.b = second + c * kBlock * width, back.b_ld = width, back.b_transposed = true;
      back.c = mid_grad, back.c_ld = kBlockLd, back.c_block = block;
      back.next = first + c * kBlock;
      back.next_rows = width, back.next_columns = columns, back.next_ld = hidden;
      kernel.product(back, panel);
      for (int64_t at = 0; at < columns; at += kBlock) {
        const int64_t chunk = c + at / kBlock;
        float* const grads = hidden_grad + chunk * block + task.first * kBlockLd;
        float* const actives = active + chunk * block + task.first * kBlockLd;
        const float* const befores = kept ? kept + task.first * hidden + chunk * kBlock : actives;
        for (int64_t i = 0; i < task.count; ++i)
          gate_grad[chunk * count + task.first + i] =
              kernel.activate_backward(static_cast<int>(activation), befores + i * (kept ? hidden : kBlockLd),
                                       gate ? gate[task.first + i] : 1.0f, grads + i * kBlockLd, actives + i * kBlockLd,
                                       shape.chunk_columns(chunk));
      }
      if (!rows_grad) continue;
      Product down;
      down.m = task.count, down.n = width, down.k = columns;
      down.a = mid_grad, down.a_block = block;
      down.b = first + c * kBlock, down.b_ld = hidden, down.b_transposed = true;
      down.c = rows_grad + (task.part * count + task.first) * width, down.c_ld = width;
      down.accumulate = c > task.chunk;
      if (c + at_once < task.chunk_end) {
        down.next = second + (c + at_once) * kBlock * width;
      } else if (const Task* soon = plan.find(claim())) {
        down.next = w2 + (soon->expert * hidden + soon->chunk * kBlock) * width;
      }
      down.next_rows = columns, down.next_columns = width, down.next_ld = width;
      kernel.product(down, panel);
    }
  });

  ExpertMlpGradients out;
  out.weights.w1 = empty_from_pool(w.w1.sizes());
  out.weights.w2 = empty_from_pool(w.w2.sizes());
  if (b1) out.weights.b1 = at::empty_like(w.b1);
  if (b2) out.weights.b2 = at::empty_like(w.b2);
  float *const w1_grad = out.weights.w1.data_ptr<float>(), *const w2_grad = out.weights.w2.data_ptr<float>();
  float* const b1_grad = b1 ? out.weights.b1.data_ptr<float>() : nullptr;
  float* const b2_grad = b2 ? out.weights.b2.data_ptr<float>() : nullptr;
  // Two tasks for each expert and chunk: the gradients of W1[:, chunk] and of W2[chunk, :], over all rows of the
  // expert.
  run_tasks(2 * shape.experts * chunks, [&](int64_t number, const auto&) {
    const int64_t expert = number / (2 * chunks), c = number / 2 % chunks, columns = shape.chunk_columns(c);
    const bool second = number % 2 == 1;
    const int64_t first_row = offset[expert], rows_here = offset[expert + 1] - first_row;
    float* panel = scratch().panel.floats(kernel.panel_floats);
    const float* mid_grad = hidden_grad + c * block + first_row * kBlockLd;
    const float* mid = active + c * block + first_row * kBlockLd;
    for (int64_t d = 0; d < shape.width_blocks(); ++d) {
      const int64_t some = std::min(kBlock, width - d * kBlock);
      Product p;
      p.k = rows_here;
      p.a_transposed = true, p.a_ld = kBlockLd, p.b_ld = kBlockLd;
      p.stream = true;
      if (second) {
        p.m = columns, p.n = some;
        p.a = mid, p.b = out_grad + d * block + first_row * kBlockLd;
        p.c = w2_grad + (expert * hidden + c * kBlock) * width + d * kBlock, p.c_ld = width;
      } else {
        p.m = some, p.n = columns;
        p.a = in + d * block + first_row * kBlockLd, p.b = mid_grad;
        p.c = w1_grad + (expert * width + d * kBlock) * hidden + c * kBlock, p.c_ld = hidden;
      }
      kernel.product(p, panel);
      if (second && c == 0 && b2_grad) {
        float* sum = b2_grad + expert * width + d * kBlock;
        std::fill_n(sum, some, 0.0f);
        for (int64_t r = 0; r < rows_here; ++r)
          kernel.add_scaled(gate ? gate[first_row + r] : 1.0f, out_grad + d * block + (first_row + r) * kBlockLd, sum,
                            some);
      }
    }
    if (!second && b1_grad) {
      float* sum = b1_grad + expert * hidden + c * kBlock;
      std::fill_n(sum, columns, 0.0f);
      for (int64_t r = 0; r < rows_here; ++r) kernel.add_scaled(1.0f, mid_grad + r * kBlockLd, sum, columns);
    }
  });

  if (needs.tokens) {
    out.tokens = empty_from_pool({rows.map.tokens, width});
    combine_parts(kernel, rows.map, nullptr, rows_grad, width, plan.parts, width, out.tokens.data_ptr<float>());
  }
  if (needs.gate) {
    at::Tensor gate_out = at::empty({count}, tokens.options());
    float* to = gate_out.data_ptr<float>();
    for (int64_t e = 0; e < shape.experts; ++e)
      for (int64_t r = offset[e]; r < offset[e + 1]; ++r) {
        to[r] = b2 ? kernel.dot(b2 + e * width, g + row_token[r] * width, width) : 0.0f;
        for (int64_t c = 0; c < chunks; ++c) to[r] += gate_grad[c * count + r];
      }
    out.gate = gate_out.to(rows.gate.scalar_type());
  }
  return out;
}

}  // namespace sparsight::cpu
