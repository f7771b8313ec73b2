#include "sparsight/kernels/experts/expert_mlp.h"

#include "sparsight/kernels/experts/expert_rows.h"
#include "sparsight/kernels/pack/packed_operand.h"
#include "sparsight/kernels/routing/combine_parts.h"
#include "sparsight/kernels/threads/tasks.h"

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

class Forward {
 public:
  Forward(Threads& threads, const ExpertRowNumbers& rows, const StoredExperts& w, const ExpertMlpForward& p)
      : threads_(threads),
        w_(w),
        shape_(w.shape),
        p_(p),
        rows_(rows),
        plan_(make_plan(rows.offset, shape_.experts, shape_.chunks(), kernel_.task_rows, threads.inside())) {
    if (!w.packed() && !w.each) {
      packed_w1_ = PackedOperand(threads, w.w1, rows.offset, shape_.experts, p.bf16);
      packed_w2_ = PackedOperand(threads, w.w2, rows.offset, shape_.experts, p.bf16);
    }
    join_parts(plan_, threads.count());
    if (w.packed()) split_rows(plan_, threads.count());
    rows_out_ = writes_out() ? p.out : row_results().floats(plan_.parts * shape_.rows * shape_.width);
  }

  void run() const {
    run_tasks(threads_, plan_.size(), [&](int64_t number, const auto& claim) {
      run_task(plan_.tasks[static_cast<size_t>(number)], [&] { return plan_.find(claim()); });
    });
    if (!writes_out())
      combine_parts(threads_, rows_.map, rows_.gate, {rows_out_, shape_.width, plan_.parts, shape_.width}, p_.out,
                    p_.residual);
  }

 private:
  // Results of rows are the output.
  bool writes_out() const { return rows_.in_place && !rows_.gate && plan_.parts == 1; }

  float* panel() const { return forward_space().panel.floats(kernel_.panel_floats); }

  template <class NextTask>
  void run_task(const Task& task, const NextTask& next_task) const {
    ForwardSpace& scratch = forward_space();
    const int64_t step = at_once(task);
    const RowBlocks in = blocks_in(scratch.in, shape_.width_blocks(), task.count);
    const RowBlocks hidden = blocks_in(scratch.hidden, step, task.count);
    gather(p_.tokens, rows_.map.row_token, task, shape_.width, in);
    for (int64_t c = task.chunk; c < task.chunk_end; c += step) {
      const int64_t end = std::min(c + step, task.chunk_end);
      hidden_layer(task, c, end, in, hidden);
      for (int64_t part = plan_.chunk_part(c); part <= plan_.chunk_part(end - 1); ++part) {
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
            down.prefetch_all(p_.tokens + upcoming->first * shape_.width, upcoming->count, shape_.width, shape_.width);
        }
        if (writes_out() && first == 0) p_.residual.start(kernel_, task.first, down);
        packed_w2_.serve(down, task.expert, first * kBlock, 0);
        kernel_.product(down, panel());
        if (writes_out() && last == shape_.chunks()) p_.residual.finish(kernel_, task.first, task.count, down.c);
      }
    }
  }

  // A dense layer: all tasks do, on rows in place.
  bool shares_weights() const { return rows_.in_place && w_.w1.transposed; }

  int64_t at_once(const Task& task) const { return w_.packed() ? 1 : chunks_at_once(task); }

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
    up.b_type = w_.type(), up.b_panels = w_.packed(), up.bf16_products = p_.bf16;
    up.b_scale = w_.first_scale(task.expert, c);
    up.c = hidden.data, up.c_ld = kBlockLd, up.c_block = hidden.stride;
    up.bias = w_.first_bias(task.expert, c);
    up.activates = true, up.activation = p_.activation;
    if (p_.kept)
      up.pre_activation = p_.kept + task.first * shape_.hidden + c * kBlock, up.pre_activation_ld = shape_.hidden;
    up.keeps_slope = p_.keeps_slope;
    up.prefetch = w_.w2.transposed ? nullptr : w_.second(task.expert, c);
    up.prefetch_rows = up.n, up.prefetch_columns = up.prefetch_ld = shape_.width;
    if (p_.kept && shares_weights()) up.prefetch_all(up.pre_activation, up.m, up.n, shape_.hidden);
    packed_w1_.serve(up, task.expert, 0, c * kBlock);
    kernel_.product(up, panel());
    for (int64_t i = c; i < end; ++i)
      drop_rows(kernel_, rows_, task, shape_.hidden, i * kBlock, shape_.chunk_columns(i), hidden.block(i - c));
  }

  // Chunks c .. end of the hidden layer times W2, added to the partial result of their part.
  Gemm partial_result(const Task& task, int64_t part, int64_t c, int64_t end, RowBlocks hidden) const {
    Gemm down;
    down.m = task.count, down.n = shape_.width, down.k = shape_.chunk_columns(c, end - c);
    down.a = hidden.data, down.a_block = hidden.stride;
    down.b = w_.second(task.expert, c), down.b_ld = w_.w2.ld(), down.b_transposed = w_.w2.transposed;
    down.b_type = w_.type();
    down.b_panels = w_.packed(), down.bf16_products = p_.bf16;
    down.b_scale = w_.second_scale(task.expert);
    down.c = rows_out_ + (part * shape_.rows + task.first) * shape_.width, down.c_ld = shape_.width;
    down.accumulate = c > plan_.first_chunk(part);
    down.bias = c == 0 ? w_.second_bias(task.expert) : nullptr;
    return down;
  }

  const Kernels& kernel_ = kernels();
  Threads& threads_;
  const StoredExperts& w_;
  const MlpShape shape_;
  const ExpertMlpForward& p_;
  const ExpertRowNumbers& rows_;
  Plan plan_;
  PackedOperand packed_w1_, packed_w2_;
  float* rows_out_ = nullptr;  // [parts,R,D]
};

}  // namespace

void expert_mlp_forward(Threads& threads, const ExpertRowNumbers& rows, const StoredExperts& experts,
                        const ExpertMlpForward& p) {
  Forward(threads, rows, experts, p).run();
}

}  // namespace sparsight::cpu
