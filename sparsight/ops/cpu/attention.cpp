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
  // Of a head's first element in a tensor [B,S,row].
  int64_t offset(int64_t head, int64_t row) const { return head / heads_ * tokens_ * row + head % heads_ * size(); }
  AttentionHead at(int64_t head) const {
    const float* const q = qkv_ + offset(head, 3 * width_);
    return {q, q + width_, q + 2 * width_, 3 * width_, tokens_, size(), 1 / std::sqrt(static_cast<float>(size()))};
  }

 private:
  int64_t images_, tokens_, heads_, width_;
  const float* qkv_;
};

}  // namespace

AttentionOutput attention_forward(const at::Tensor& qkv, int64_t heads, bool needs_log_sum) {
  const Kernels& kernel = kernels();
  const bool bf16 = product_type() == ProductType::bf16;
  const AllHeads all(qkv, heads);
  const int64_t tokens = all.tokens();
  AttentionOutput output;
  output.out = empty_from_arena({qkv.size(0), tokens, all.width()});
  if (needs_log_sum) output.log_sum = at::empty({qkv.size(0), heads, tokens}, at::kFloat);
  if (output.out.numel() == 0) return output;
  float* const out = output.out.data_ptr<float>();
  float* const log_sum = needs_log_sum ? output.log_sum.data_ptr<float>() : nullptr;
  // With fewer heads than keep all threads busy, each is split into parts of its queries, which pack the keys again.
  const int64_t wanted = pieces_for_all_threads(all.count());
  const Runs parts(tokens, (tokens + wanted - 1) / wanted < kQueries ? kQueries : (tokens + wanted - 1) / wanted);
  run_tasks(all.count() * parts.runs, [&](int64_t number, const auto& claim) {
    const int64_t head = number / parts.runs, part = number % parts.runs;
    AttentionForward p;
    p.head = all.at(head);
    p.first = parts.first(part), p.count = parts.length(part);
    p.out = out + all.offset(head, all.width()), p.out_ld = all.width();
    if (const int64_t then = claim() / parts.runs; then != head && then < all.count()) p.upcoming = all.at(then).q;
    p.bf16 = bf16;
    p.log_sum = log_sum ? log_sum + head * tokens : nullptr;
    p.scratch = scratch(attention_forward_floats(tokens, all.size()));
    kernel.attention_forward(p);
  });
  return output;
}

at::Tensor attention_backward(const at::Tensor& grad, const at::Tensor& qkv, const AttentionOutput& forward) {
  const Kernels& kernel = kernels();
  const bool bf16 = product_type() == ProductType::bf16;
  const AllHeads all(qkv, forward.log_sum.size(1));
  const int64_t tokens = all.tokens(), width = all.width();
  at::Tensor qkv_grad = empty_from_arena(qkv.sizes());
  if (qkv_grad.numel() == 0) return qkv_grad;
  const float *const out = forward.out.const_data_ptr<float>(), *const out_grad = grad.const_data_ptr<float>();
  const float* const log_sum = forward.log_sum.const_data_ptr<float>();
  float* const to = qkv_grad.data_ptr<float>();
  run_tasks(all.count(), [&](int64_t head, const auto& claim) {
    AttentionBackward p;
    p.head = all.at(head);
    p.out = out + all.offset(head, width), p.out_grad = out_grad + all.offset(head, width), p.out_ld = width;
    if (const int64_t then = claim(); then < all.count()) {
      p.upcoming = all.at(then).q;
      p.upcoming_out = out + all.offset(then, width), p.upcoming_out_grad = out_grad + all.offset(then, width);
    }
    p.log_sum = log_sum + head * tokens;
    p.bf16 = bf16;
    p.q_grad = to + all.offset(head, 3 * width);
    p.k_grad = p.q_grad + width, p.v_grad = p.k_grad + width;
    p.scratch = scratch(attention_backward_floats(tokens, all.size()));
    kernel.attention_backward(p);
  });
  return qkv_grad;
}

}  // namespace sparsight::cpu
