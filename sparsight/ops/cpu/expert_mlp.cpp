#include "sparsight/ops/cpu/expert_mlp.h"

#include "sparsight/ops/cpu/arena.h"
#include "sparsight/ops/cpu/combine_parts.h"
#include "sparsight/ops/cpu/expert_rows.h"
#include "sparsight/ops/cpu/packed_operand.h"
#include "sparsight/ops/cpu/residual_rows.h"
#include "sparsight/ops/cpu/tasks.h"
#include "sparsight/ops/product_type.h"

namespace sparsight::cpu {
namespace {

// Scratch of each thread.
struct ForwardSpace {
  Workspace in, hidden, panel;
};
ForwardSpace& forward_space() {
  thread_local ForwardSpace scratch;
  return scratch;
}

// Weights as the kernels read them.
struct StoredWeights {
  MlpShape shape;
  const float *b1, *b2;          // may be null
  WeightView w1 = {}, w2 = {};   // [E,D,F], [E,F,D]; null if packed
  const void* panels = nullptr;  // packed weights in `layout`; null if plain
  PackedLayout layout{};
  const float *scale1 = nullptr, *scale2 = nullptr;  // of int8

  WeightType type() const { return panels ? layout.type : WeightType::fp32; }
  // W1[:, columns] and W2[columns, :] of an expert, starting at a chunk of the hidden layer
  const void* first(int64_t expert, int64_t chunk) const {
    return panels ? at(panels, expert * layout.expert_bytes() + layout.first_weights(chunk))
                  : w1.at(expert, 0, chunk * kBlock);
  }
  const void* second(int64_t expert, int64_t chunk) const {
    return panels ? at(panels, expert * layout.expert_bytes() + layout.second_weights(chunk))
                  : w2.at(expert, chunk * kBlock, 0);
  }

 private:
  static const void* at(const void* weights, int64_t byte) { return static_cast<const char*>(weights) + byte; }
};

class Forward {
 public:
  // kept: receives `what` of the hidden layer, [R,F]; or null. add: what becomes of the output
  Forward(const at::Tensor& tokens, const ExpertRows& rows, const StoredWeights& w, Activation activation,
          at::Tensor* kept, const ResidualAdd& add, KeptHidden what)
      : w_(w),
        shape_(w.shape),
        activation_(activation),
        keeps_slope_(what == KeptHidden::slope),
        rows_(rows),
        plan_(make_plan(rows.offsets.const_data_ptr<int64_t>(), shape_.experts, shape_.chunks(), kernel_.task_rows)),
        x_(floats_of(tokens)),
        residual_(add, shape_.width) {
    if (!w.panels) {
      const int64_t* offset = rows.offsets.const_data_ptr<int64_t>();
      packed_w1_ = PackedOperand(w.w1, offset, shape_.experts, bf16_);
      packed_w2_ = PackedOperand(w.w2, offset, shape_.experts, bf16_);
    }
    join_parts(plan_, at::get_num_threads());
    if (w.panels) split_rows(plan_, at::get_num_threads());
    if (kept) {
      *kept = empty_from_arena({shape_.rows, shape_.hidden});
      kept_ = kept->data_ptr<float>();
    }
    if (writes_out()) {
      out_ = empty_from_arena({shape_.rows, shape_.width});
      rows_out_ = out_.data_ptr<float>();
    } else {
      rows_out_ = row_results().floats(plan_.parts * shape_.rows * shape_.width);
    }
  }

  at::Tensor run() const {
    run_tasks(plan_.size(), [&](int64_t number, const auto& claim) {
      run_task(plan_.tasks[static_cast<size_t>(number)], [&] { return plan_.find(claim()); });
    });
    if (writes_out()) return out_;
    at::Tensor out = empty_from_arena({rows_.map.tokens, shape_.width});
    const at::Tensor gate = float_gate(rows_);
    float* const to = out.data_ptr<float>();
    combine_parts(kernel_, rows_.map, floats_of(gate), rows_out_, shape_.width, plan_.parts, shape_.width, to,
                  residual_);
    return out;
  }

 private:
  // Results of rows are the output.
  bool writes_out() const { return rows_.map.in_place && !rows_.gate.defined() && plan_.parts == 1; }

  float* panel() const { return forward_space().panel.floats(kernel_.panel_floats); }

  template <class NextTask>
  void run_task(const Task& task, const NextTask& next_task) const {
    ForwardSpace& scratch = forward_space();
    const int64_t step = at_once(task);
    const RowBlocks in = blocks_in(scratch.in, shape_.width_blocks(), task.count);
    const RowBlocks hidden = blocks_in(scratch.hidden, step, task.count);
    gather(x_, rows_.map.row_token.const_data_ptr<int64_t>(), task, shape_.width, in);
    for (int64_t c = task.chunk; c < task.chunk_end; c += step) {
      const int64_t end = std::min(c + step, task.chunk_end);
      hidden_layer(task, c, end, in, hidden);
      for (int64_t part = plan_.part_of(c); part <= plan_.part_of(end - 1); ++part) {
        const int64_t first = std::max(c, plan_.first_chunk(part)), last = std::min(end, plan_.first_chunk(part + 1));
        Gemm down = partial_result(task, part, first, last, {hidden.block(first - c), hidden.stride});
        if (last < end) {
          down.prefetch = w_.w2.transposed ? nullptr : w_.second(task.expert, last);
          down.prefetch_rows = shape_.chunk_columns(last, end - last),
          down.prefetch_columns = down.prefetch_ld = shape_.width;
        } else if (last < task.chunk_end) {
          fetch_first(down, task, last);
        } else if (const Task* upcoming = next_task()) {
          fetch_first(down, *upcoming, upcoming->chunk);
          if (shares_weights())
            down.prefetch_all(x_ + upcoming->first * shape_.width, upcoming->count, shape_.width, shape_.width);
        }
        if (writes_out() && first == 0) residual_.start(kernel_, task.first, down);
        packed_w2_.serve(down, task.expert, first * kBlock, 0);
        kernel_.product(down, panel());
        if (writes_out() && last == shape_.chunks()) residual_.finish(kernel_, task.first, task.count, down.c);
      }
    }
  }

  // A dense layer: all tasks do, on rows in place.
  bool shares_weights() const { return rows_.map.in_place && w_.w1.transposed; }

  int64_t at_once(const Task& task) const { return w_.panels ? 1 : chunks_at_once(task); }

  // Prefetch target of `down`: W1 of a task, starting at a chunk.
  void fetch_first(Gemm& down, const Task& task, int64_t chunk) const {
    if (w_.w1.transposed) return;
    down.prefetch = w_.first(task.expert, chunk);
    down.prefetch_rows = shape_.width, down.prefetch_ld = shape_.hidden;
    down.prefetch_columns = shape_.chunk_columns(chunk, std::min(at_once(task), task.chunk_end - chunk));
  }

  // Chunks c .. end of the hidden layer.
  void hidden_layer(const Task& task, int64_t c, int64_t end, RowBlocks in, RowBlocks hidden) const {
    Gemm up;
    up.m = task.count, up.n = shape_.chunk_columns(c, end - c), up.k = shape_.width;
    up.a = in.data, up.a_block = in.stride;
    up.b = w_.first(task.expert, c), up.b_ld = w_.w1.ld(), up.b_transposed = w_.w1.transposed;
    up.b_type = w_.type(), up.b_panels = w_.panels != nullptr, up.bf16_products = bf16_;
    up.b_scale = w_.scale1 ? w_.scale1 + task.expert * shape_.hidden + c * kBlock : nullptr;
    up.c = hidden.data, up.c_ld = kBlockLd, up.c_block = hidden.stride;
    up.bias = w_.b1 ? w_.b1 + task.expert * shape_.hidden + c * kBlock : nullptr;
    up.activates = true, up.activation = activation_;
    if (kept_)
      up.pre_activation = kept_ + task.first * shape_.hidden + c * kBlock, up.pre_activation_ld = shape_.hidden;
    up.keeps_slope = keeps_slope_;
    up.prefetch = w_.w2.transposed ? nullptr : w_.second(task.expert, c);
    up.prefetch_rows = up.n, up.prefetch_columns = up.prefetch_ld = shape_.width;
    if (kept_ && shares_weights()) up.prefetch_all(up.pre_activation, up.m, up.n, shape_.hidden);
    packed_w1_.serve(up, task.expert, 0, c * kBlock);
    kernel_.product(up, panel());
    for (int64_t i = c; i < end; ++i)
      drop_rows(kernel_, rows_.dropout, task, i * kBlock, shape_.chunk_columns(i), hidden.block(i - c));
  }

  // Chunks c .. end of the hidden layer times W2, added to the partial result of their part.
  Gemm partial_result(const Task& task, int64_t part, int64_t c, int64_t end, RowBlocks hidden) const {
    Gemm down;
    down.m = task.count, down.n = shape_.width, down.k = shape_.chunk_columns(c, end - c);
    down.a = hidden.data, down.a_block = hidden.stride;
    down.b = w_.second(task.expert, c), down.b_ld = w_.w2.ld(), down.b_transposed = w_.w2.transposed;
    down.b_type = w_.type();
    down.b_panels = w_.panels != nullptr, down.bf16_products = bf16_;
    down.b_scale = w_.scale2 ? w_.scale2 + task.expert * shape_.width : nullptr;
    down.c = rows_out_ + (part * shape_.rows + task.first) * shape_.width, down.c_ld = shape_.width;
    down.accumulate = c > plan_.first_chunk(part);
    down.bias = c == 0 && w_.b2 ? w_.b2 + task.expert * shape_.width : nullptr;
    return down;
  }

  const Kernels& kernel_ = kernels();
  const bool bf16_ = product_type() == ProductType::bf16;
  const StoredWeights& w_;
  const MlpShape shape_;
  const Activation activation_;
  const bool keeps_slope_;
  const ExpertRows& rows_;
  Plan plan_;
  PackedOperand packed_w1_, packed_w2_;
  const float* const x_;
  const ResidualRows residual_;
  float* kept_ = nullptr;      // [R,F]
  at::Tensor out_;             // if writes_out()
  float* rows_out_ = nullptr;  // [parts,R,D]
};

}  // namespace

at::Tensor expert_mlp_forward(const at::Tensor& tokens, const ExpertRows& rows, const ExpertMlpWeights& w,
                              Activation activation, at::Tensor* kept, const ResidualAdd& add, KeptHidden what) {
  const StoredWeights stored{.shape = shape_of(rows, w),
                             .b1 = floats_of(w.b1),
                             .b2 = floats_of(w.b2),
                             .w1 = view_of(w.w1),
                             .w2 = view_of(w.w2)};
  return Forward(tokens, rows, stored, activation, kept, add, what).run();
}

at::Tensor packed_experts_forward(const at::Tensor& tokens, const ExpertRows& rows, const PackedExperts& packed,
                                  const PackedLayout& layout, Activation activation) {
  const ExpertMlpWeights& w = packed.weights;
  const StoredWeights stored{
      .shape = {packed.experts, packed.width, packed.hidden, rows.map.row_token.size(0)},
      .b1 = floats_of(w.b1),
      .b2 = floats_of(w.b2),
      .panels = packed.storage.const_data_ptr(),
      .layout = layout,
      .scale1 = floats_of(packed.scale1),
      .scale2 = floats_of(packed.scale2),
  };
  return Forward(tokens, rows, stored, activation, nullptr, {}, KeptHidden::pre_activation).run();
}

}  // namespace sparsight::cpu
