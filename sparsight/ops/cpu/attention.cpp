#include "sparsight/ops/cpu/attention.h"

#include <algorithm>
#include <cmath>

#include <ATen/ops/empty.h>

#include "sparsight/ops/cpu/arena.h"
#include "sparsight/ops/cpu/attention_task.h"
#include "sparsight/ops/cpu/kernels.h"
#include "sparsight/ops/cpu/tasks.h"
#include "sparsight/ops/cpu/workspace.h"
#include "sparsight/ops/product_type.h"

namespace sparsight::cpu {
namespace {

float* scratch(int64_t floats) {
  thread_local Workspace space;
  return space.floats(floats);
}

// The heads of all images, numbered image after image.
class AllHeads {
 public:
  AllHeads(const at::Tensor& qkv, int64_t heads)
      : images_(qkv.size(0)),
        tokens_(qkv.size(1)),
        heads_(heads),
        width_(qkv.size(2) / 3),
        qkv_(qkv.const_data_ptr<float>()) {}

  int64_t count() const { return images_ * heads_; }
  int64_t tokens() const { return tokens_; }
  int64_t width() const { return width_; }
  int64_t size() const { return width_ / heads_; }
  // The offset of a head's first element in a tensor [B,rows,columns].
  int64_t offset(int64_t head, int64_t rows, int64_t columns) const {
    return head / heads_ * rows * columns + head % heads_ * size();
  }
  AttentionHead at(int64_t head) const {
    const float* const q = qkv_ + offset(head, tokens_, 3 * width_);
    return {q, q + width_, q + 2 * width_, 3 * width_, tokens_, size(), 1 / std::sqrt(static_cast<float>(size()))};
  }

 private:
  int64_t images_, tokens_, heads_, width_;
  const float* qkv_;
};

}  // namespace

AttentionOutput attention_forward(const at::Tensor& qkv, int64_t heads, bool needs_log_sum, int64_t queries) {
  const Kernels& kernel = kernels();
  const bool bf16 = product_type() == ProductType::bf16;
  const AllHeads all(qkv, heads);
  AttentionOutput output;
  output.out = empty_from_arena({qkv.size(0), queries, all.width()});
  if (needs_log_sum) output.log_sum = at::empty({qkv.size(0), heads, queries}, at::kFloat);
  if (output.out.numel() == 0) return output;
  float* const out = output.out.data_ptr<float>();
  float* const log_sum = needs_log_sum ? output.log_sum.data_ptr<float>() : nullptr;
  // With fewer heads than keep all threads busy, each is split into parts of its queries, which pack the keys again.
  const int64_t wanted = pieces_for_all_threads(all.count());
  const Runs parts(queries, std::max(kQueries, (queries + wanted - 1) / wanted));
  run_tasks(all.count() * parts.runs, [&](int64_t number, const auto& claim) {
    const int64_t head = number / parts.runs, part = number % parts.runs;
    AttentionForward p;
    p.head = all.at(head);
    p.first = parts.first(part), p.count = parts.length(part);
    p.out = out + all.offset(head, queries, all.width()), p.out_ld = all.width();
    if (const int64_t then = claim() / parts.runs; then != head && then < all.count()) p.upcoming = all.at(then).q;
    p.bf16 = bf16;
    p.log_sum = log_sum ? log_sum + head * queries : nullptr;
    p.scratch = scratch(attention_forward_floats(all.tokens(), all.size()));
    kernel.attention_forward(p);
  });
  return output;
}

at::Tensor attention_backward(const at::Tensor& grad, const at::Tensor& qkv, const AttentionOutput& forward) {
  const Kernels& kernel = kernels();
  const bool bf16 = product_type() == ProductType::bf16;
  const AllHeads all(qkv, forward.log_sum.size(1));
  const int64_t tokens = all.tokens(), width = all.width(), queries = grad.size(1);
  at::Tensor qkv_grad = empty_from_arena(qkv.sizes());
  if (qkv_grad.numel() == 0) return qkv_grad;
  const float *const out = forward.out.const_data_ptr<float>(), *const out_grad = grad.const_data_ptr<float>();
  const float* const log_sum = forward.log_sum.const_data_ptr<float>();
  float* const to = qkv_grad.data_ptr<float>();
  run_tasks(all.count(), [&](int64_t head, const auto& claim) {
    AttentionBackward p;
    p.head = all.at(head);
    p.queries = queries;
    const int64_t at = all.offset(head, queries, width);
    p.out = out + at, p.out_grad = out_grad + at, p.out_ld = width;
    if (const int64_t then = claim(); then < all.count()) {
      p.upcoming = all.at(then).q;
      const int64_t upcoming = all.offset(then, queries, width);
      p.upcoming_out = out + upcoming, p.upcoming_out_grad = out_grad + upcoming;
    }
    p.log_sum = log_sum + head * queries;
    p.bf16 = bf16;
    p.q_grad = to + all.offset(head, tokens, 3 * width);
    p.k_grad = p.q_grad + width, p.v_grad = p.k_grad + width;
    for (int64_t i = queries; i < tokens; ++i) std::fill_n(p.q_grad + i * 3 * width, all.size(), 0.0f);
    p.scratch = scratch(attention_backward_floats(tokens, all.size()));
    kernel.attention_backward(p);
  });
  return qkv_grad;
}

}  // namespace sparsight::cpu
