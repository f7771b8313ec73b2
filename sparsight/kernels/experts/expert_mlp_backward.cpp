// The backward pass of expert_mlp(). A task that has all rows of an expert computes the gradient of its weights too,
// while its rows are in the cache. If the rows of an expert are split over several tasks, the gradient of its weights
// follows in a second round.
#include <algorithm>
#include <utility>
#include <vector>

#include "sparsight/core/error.h"
#include "sparsight/kernels/experts/expert_mlp.h"
#include "sparsight/kernels/experts/expert_rows.h"
#include "sparsight/kernels/pack/packed_operand.h"
#include "sparsight/kernels/routing/combine_parts.h"
#include "sparsight/kernels/threads/tasks.h"

namespace sparsight::cpu {
namespace {

constexpr int64_t kPieceRows = 48;  // rows of a piece of a gradient are a multiple of this, which tiles divide

// Scratch of each thread. The rows of experts with several tasks are in that of the calling thread.
struct BackwardSpace {
  Workspace in, out_grad, hidden_grad, active, panel;
  Workspace all_in, all_out_grad, all_hidden_grad, all_active, gate_grad;  // of all rows
};
BackwardSpace& backward_space() {
  thread_local BackwardSpace scratch;
  return scratch;
}

// Rows of one expert: its tokens, the gradient of its output, the gradient of chunks of its hidden layer, and those
// chunks after the activation, times the gate.
struct BackwardRows {
  RowBlocks in, out_grad, hidden_grad, active;
};

// One of `count` pieces of each gradient of weights; the first has those of biases too.
struct Piece {
  int64_t number = 0, count = 1;
};

class Backward {
 public:
  Backward(Threads& threads, const ExpertRowNumbers& rows, const StoredExperts& experts, const ExpertMlpBackward& p)
      : threads_(threads),
        shape_(experts.shape),
        rows_(rows),
        p_(p),
        offset_(rows.offset),
        row_token_(rows.map.row_token),
        plan_(make_plan(offset_, shape_.experts, shape_.chunks(), kernel_.task_rows, threads.inside())),
        x_(p.tokens),
        grad_(p.grad),
        gate_(rows.gate),
        kept_(p.kept),
        kept_slope_(kept_ && p.kept_slope),
        w1_(experts.w1),
        w2_(experts.w2),
        b1_(experts.b1),
        b2_(experts.b2),
        packed_w2_(threads, w2_.t(), offset_, shape_.experts, p.bf16),
        needs_weights_(p.w1_grad.data != nullptr),
        shares_weights_(rows.in_place && w1_.transposed) {
    SPARSIGHT_CHECK(!kept_slope_ || !(p.gate_grad || needs_weights_ || gate_));
    if (p.tokens_grad) packed_w1_ = PackedOperand(threads, w1_.t(), offset_, shape_.experts, p.bf16);
    BackwardSpace& space = backward_space();
    int64_t shared = 0;  // number of rows up to the last one of an expert with several tasks
    for (int64_t e = 0; e < shape_.experts; ++e)
      if (!in_one_task(e)) shared = offset_[e + 1];
    shared_ = {blocks_in(space.all_in, shape_.width_blocks(), shared),
               blocks_in(space.all_out_grad, shape_.width_blocks(), shared),
               blocks_in(space.all_hidden_grad, shape_.chunks(), shared),
               blocks_in(space.all_active, shape_.chunks(), shared)};
    if (p.tokens_grad)
      rows_grad_ = writes_tokens() ? p.tokens_grad : row_results().floats(plan_.parts * shape_.rows * shape_.width);
    gate_grad_ = space.gate_grad.floats(shape_.chunks() * shape_.rows);
  }

  void run() {
    rows_round();
    if (needs_weights_) weights_round();
    if (p_.tokens_grad && !writes_tokens())
      combine_parts(threads_, rows_.map, nullptr, {rows_grad_, shape_.width, plan_.parts, shape_.width},
                    p_.tokens_grad);
    if (p_.gate_grad) gate_gradients();
  }

 private:
  // Gradients of rows are those of the tokens.
  bool writes_tokens() const { return rows_.in_place && plan_.parts == 1; }

  void rows_round() const {
    run_tasks(threads_, plan_.size(), [&](int64_t number, const auto& claim) {
      run_task(plan_.tasks[static_cast<size_t>(number)], [&] { return plan_.find(claim()); });
    });
  }

  // Weights of the experts whose rows are split over several tasks, or that have none.
  void weights_round() const {
    std::vector<int64_t> left;
    for (int64_t e = 0; e < shape_.experts; ++e)
      if (expert_rows(e) == 0 || !in_one_task(e)) left.push_back(e);
    const int64_t chunks = static_cast<int64_t>(left.size()) * shape_.chunks();
    const int64_t pieces = std::min(pieces_for_all_threads(threads_, chunks), kBlock / kPieceRows);
    run_tasks(threads_, chunks * pieces, [&](int64_t number, const auto&) {
      const int64_t expert = left[static_cast<size_t>(number / pieces / shape_.chunks())];
      const int64_t c = number / pieces % shape_.chunks();
      const auto from = [&](RowBlocks all, int64_t chunk) {
        return expert_rows(expert) > 0 ? RowBlocks{all.block(chunk) + offset_[expert] * kBlockLd, all.stride}
                                       : RowBlocks{};
      };
      weights_gradients(
          expert, c, 1,
          {from(shared_.in, 0), from(shared_.out_grad, 0), from(shared_.hidden_grad, c), from(shared_.active, c)},
          {number % pieces, pieces});
    });
  }

  void gate_gradients() const {
    for (int64_t e = 0; e < shape_.experts; ++e)
      for (int64_t r = offset_[e]; r < offset_[e + 1]; ++r) {
        float& to = p_.gate_grad[r];
        to = b2_ ? kernel_.dot(b2_ + e * shape_.width, grad_ + row_token_[r] * shape_.width, shape_.width) : 0.0f;
        for (int64_t c = 0; c < shape_.chunks(); ++c) to += gate_grad_[c * shape_.rows + r];
      }
  }

  int64_t expert_rows(int64_t expert) const { return offset_[expert + 1] - offset_[expert]; }
  // Whether each task of the expert has all rows that the gradients of its weights need. (Other tasks may have other
  // chunks of its hidden layer.)
  bool in_one_task(int64_t expert) const { return !needs_weights_ || expert_rows(expert) <= kernel_.task_rows; }

  float* panel() const { return backward_space().panel.floats(kernel_.panel_floats); }
  const float* first(int64_t expert, int64_t chunk) const { return w1_.at(expert, 0, chunk * kBlock); }
  const float* second(int64_t expert, int64_t chunk) const { return w2_.at(expert, chunk * kBlock, 0); }

  template <class NextTask>
  void run_task(const Task& task, const NextTask& next_task) const {
    const bool alone = in_one_task(task.expert);
    const int64_t at_once = chunks_at_once(task);
    BackwardSpace& scratch = backward_space();
    const auto from_first = [&](RowBlocks all) { return RowBlocks{all.data + task.first * kBlockLd, all.stride}; };
    // Tasks with the same rows each gather them into their own scratch, except the first, which gathers them for the
    // second round too.
    const bool own = alone || task.chunk > 0;
    BackwardRows rows;
    rows.in = own ? blocks_in(scratch.in, shape_.width_blocks(), task.count) : from_first(shared_.in);
    rows.out_grad = own ? blocks_in(scratch.out_grad, shape_.width_blocks(), task.count) : from_first(shared_.out_grad);
    gather(grad_, row_token_, task, shape_.width, rows.out_grad);
    const bool reads_tokens = !kept_ || (alone && needs_weights_);  // else only the second round may need them
    if (reads_tokens || !own) gather(x_, row_token_, task, shape_.width, rows.in);
    for (int64_t c = task.chunk; c < task.chunk_end; c += at_once) {
      const int64_t chunks = std::min(at_once, task.chunk_end - c);
      const auto from_here = [&](RowBlocks all) { return RowBlocks{from_first(all).block(c), all.stride}; };
      rows.hidden_grad = alone ? blocks_in(scratch.hidden_grad, at_once, task.count) : from_here(shared_.hidden_grad);
      rows.active = alone ? blocks_in(scratch.active, at_once, task.count) : from_here(shared_.active);
      const Task* const upcoming = c + chunks < task.chunk_end ? nullptr : next_task();
      hidden_layer(task, c, chunks, rows);
      if (rows_grad_) rows_gradient(task, c, chunks, rows, upcoming);
      if (alone && needs_weights_) weights_gradients(task.expert, c, chunks, rows);
    }
  }

  // For chunks of the hidden layer: its gradient, its activations times the gate, and their share of the gradient of
  // the gate.
  void hidden_layer(const Task& task, int64_t c, int64_t chunks, const BackwardRows& rows) const {
    const int64_t columns = shape_.chunk_columns(c, chunks);
    if (!kept_) {
      Gemm up;
      up.m = task.count, up.n = columns, up.k = shape_.width;
      up.a = rows.in.data, up.a_block = rows.in.stride;
      up.b = first(task.expert, c), up.b_ld = w1_.ld(), up.b_transposed = w1_.transposed;
      up.bf16_products = p_.bf16;
      up.c = rows.active.data, up.c_ld = kBlockLd, up.c_block = rows.active.stride;
      up.bias = b1_ ? b1_ + task.expert * shape_.hidden + c * kBlock : nullptr;
      kernel_.product(up, panel());
    }
    Gemm back;
    back.m = task.count, back.n = columns, back.k = shape_.width;
    back.a = rows.out_grad.data, back.a_block = rows.out_grad.stride;
    back.b = second(task.expert, c), back.b_ld = w2_.ld(), back.b_transposed = !w2_.transposed;
    back.bf16_products = p_.bf16;
    back.c = rows.hidden_grad.data, back.c_ld = kBlockLd, back.c_block = rows.hidden_grad.stride;
    back.prefetch = w1_.transposed ? nullptr : first(task.expert, c);
    back.prefetch_rows = shape_.width, back.prefetch_columns = columns, back.prefetch_ld = shape_.hidden;
    if (kept_ && shares_weights_)
      back.prefetch_all(kept_ + task.first * shape_.hidden + c * kBlock, task.count, columns, shape_.hidden);
    packed_w2_.serve(back, task.expert, 0, c * kBlock);
    kernel_.product(back, panel());
    for (int64_t i = 0; i < chunks; ++i) {
      if (kept_slope_) {
        through_slope(task, c + i, rows.hidden_grad.block(i));
        continue;
      }
      float *const grads = rows.hidden_grad.block(i), *const actives = rows.active.block(i);
      const float* const pre_activations = kept_ ? kept_ + task.first * shape_.hidden + (c + i) * kBlock : actives;
      drop_rows(kernel_, rows_, task, shape_.hidden, (c + i) * kBlock, shape_.chunk_columns(c + i), grads);
      for (int64_t r = 0; r < task.count; ++r)
        gate_grad_[(c + i) * shape_.rows + task.first + r] =
            training_kernel_.activate_backward(p_.activation, pre_activations + r * (kept_ ? shape_.hidden : kBlockLd),
                                               gate_ ? gate_[task.first + r] : 1.0f, grads + r * kBlockLd,
                                               actives + r * kBlockLd, shape_.chunk_columns(c + i));
      drop_rows(kernel_, rows_, task, shape_.hidden, (c + i) * kBlock, shape_.chunk_columns(c + i), actives);
    }
  }

  // From the gradient of a chunk of the hidden layer to that of its input.
  void through_slope(const Task& task, int64_t c, float* grads) const {
    const int64_t columns = shape_.chunk_columns(c);
    drop_rows(kernel_, rows_, task, shape_.hidden, c * kBlock, columns, grads);
    for (int64_t r = 0; r < task.count; ++r)
      kernel_.multiply(kept_ + (task.first + r) * shape_.hidden + c * kBlock, grads + r * kBlockLd, columns);
  }

  // The gradient of the rows through chunks of the hidden layer. upcoming: the task after the last chunks, or null
  void rows_gradient(const Task& task, int64_t c, int64_t chunks, const BackwardRows& rows,
                     const Task* upcoming) const {
    Gemm down;
    down.m = task.count, down.n = shape_.width, down.k = shape_.chunk_columns(c, chunks);
    down.a = rows.hidden_grad.data, down.a_block = rows.hidden_grad.stride;
    down.b = first(task.expert, c), down.b_ld = w1_.ld(), down.b_transposed = !w1_.transposed;
    down.bf16_products = p_.bf16;
    down.c = rows_grad_ + (task.part * shape_.rows + task.first) * shape_.width, down.c_ld = shape_.width;
    down.accumulate = c > task.chunk;
    down.prefetch_rows = down.k, down.prefetch_columns = shape_.width, down.prefetch_ld = shape_.width;
    if (c + chunks < task.chunk_end)
      down.prefetch = second(task.expert, c + chunks);
    else if (upcoming && shares_weights_)
      down.prefetch_all(grad_ + upcoming->first * shape_.width, upcoming->count, shape_.width, shape_.width);
    else if (upcoming)
      down.prefetch = second(upcoming->expert, upcoming->chunk);
    packed_w1_.serve(down, task.expert, c * kBlock, 0);
    kernel_.product(down, panel());
  }

  // For chunks of the hidden layer: the gradients of W1[:, chunks], b1[chunks], W2[chunks, :] and, with the first
  // chunk, b2, over all rows of the expert.
  void weights_gradients(int64_t expert, int64_t c, int64_t chunks, const BackwardRows& rows, Piece piece = {}) const {
    for (int64_t i = 0; i < chunks; ++i) {
      BackwardRows one = rows;
      one.hidden_grad.data = rows.hidden_grad.block(i), one.active.data = rows.active.block(i);
      for (int64_t d = 0; d < shape_.width_blocks(); ++d) {
        kernel_.product(take_piece(first_weights(expert, c + i, d, one), piece), panel());
        kernel_.product(take_piece(second_weights(expert, c + i, d, one), piece), panel());
      }
      if (piece.number == 0) biases_gradients(expert, c + i, one);
    }
  }

  // The gradients of W1[block, chunk] and W2[chunk, block] over all rows of an expert, for one chunk of the hidden
  // layer and one block of the width.
  Gemm first_weights(int64_t expert, int64_t c, int64_t block, const BackwardRows& rows) const {
    const WeightView& grad = p_.w1_grad;
    return outer_product(expert_rows(expert), {rows.in.block(block), block_columns(block)},
                         {rows.hidden_grad.data, shape_.chunk_columns(c)}, grad.at(expert, block * kBlock, c * kBlock),
                         grad);
  }
  Gemm second_weights(int64_t expert, int64_t c, int64_t block, const BackwardRows& rows) const {
    const WeightView& grad = p_.w2_grad;
    return outer_product(expert_rows(expert), {rows.active.data, shape_.chunk_columns(c)},
                         {rows.out_grad.block(block), block_columns(block)},
                         grad.at(expert, c * kBlock, block * kBlock), grad);
  }
  // A block of rows, of which some columns are used.
  struct Columns {
    const float* data;
    int64_t count;
  };
  // The part of `grad` from `to` on: left^T right, or its transpose.
  Gemm outer_product(int64_t rows, Columns left, Columns right, float* to, const WeightView& grad) const {
    if (grad.transposed) std::swap(left, right);
    Gemm p;
    p.m = left.count, p.n = right.count, p.k = rows;
    p.a = left.data, p.a_transposed = true, p.a_ld = kBlockLd;
    p.b = right.data, p.b_ld = kBlockLd;
    p.c = to, p.c_ld = grad.ld();
    p.stream = true, p.bf16_products = p_.bf16;
    return p;
  }
  // Some rows of the result of outer_product().
  static Gemm take_piece(Gemm p, Piece piece) {
    const int64_t grains = (p.m + kPieceRows - 1) / kPieceRows,
                  first = grains * piece.number / piece.count * kPieceRows;
    p.m = std::min(p.m, grains * (piece.number + 1) / piece.count * kPieceRows) - first;
    p.a += first;
    p.c += first * p.c_ld;
    return p;
  }
  int64_t block_columns(int64_t block) const { return std::min(kBlock, shape_.width - block * kBlock); }

  // The gradients of b1[chunk] and, with the first chunk, of b2.
  void biases_gradients(int64_t expert, int64_t c, const BackwardRows& rows) const {
    if (p_.b1_grad)
      add_column_sums(expert_rows(expert), rows.hidden_grad.data, nullptr, shape_.chunk_columns(c),
                      p_.b1_grad + expert * shape_.hidden + c * kBlock);
    if (c > 0 || !p_.b2_grad) return;
    for (int64_t d = 0; d < shape_.width_blocks(); ++d)
      add_column_sums(expert_rows(expert), rows.out_grad.block(d), gate_ ? gate_ + offset_[expert] : nullptr,
                      block_columns(d), p_.b2_grad + expert * shape_.width + d * kBlock);
  }
  // factors: [rows] or null for ones
  void add_column_sums(int64_t rows, const float* from, const float* factors, int64_t columns, float* sum) const {
    std::fill_n(sum, columns, 0.0f);
    for (int64_t r = 0; r < rows; ++r)
      kernel_.add_scaled(factors ? factors[r] : 1.0f, from + r * kBlockLd, sum, columns);
  }

  const Kernels& kernel_ = kernels();
  const TrainingKernels& training_kernel_ = training_kernels();
  Threads& threads_;
  const MlpShape shape_;
  const ExpertRowNumbers& rows_;
  const ExpertMlpBackward& p_;
  const int64_t *const offset_, *const row_token_;
  const Plan plan_;
  const float *const x_, *const grad_, *const gate_, *const kept_;
  const bool kept_slope_;
  const WeightView w1_, w2_;
  const float *const b1_, *const b2_;
  PackedOperand packed_w2_, packed_w1_;  // transposed
  const bool needs_weights_;
  const bool shares_weights_;  // a dense layer: all tasks, on rows in place
  BackwardRows shared_{};
  float* rows_grad_ = nullptr;  // [parts,R,D]
  float* gate_grad_ = nullptr;  // [chunks,R]
};

}  // namespace

void expert_mlp_backward(Threads& threads, const ExpertRowNumbers& rows, const StoredExperts& experts,
                         const ExpertMlpBackward& p) {
  Backward(threads, rows, experts, p).run();
}

}  // namespace sparsight::cpu
