#include "sparsight/kernels/attention/attention.h"

#include <algorithm>
#include <cmath>

#include "sparsight/kernels/attention/attention_task.h"
#include "sparsight/kernels/kernels.h"
#include "sparsight/kernels/threads/tasks.h"
#include "sparsight/kernels/workspace.h"

namespace sparsight::cpu {
namespace {

float* scratch(int64_t floats) {
  thread_local Workspace space;
  return space.floats(floats);
}

// The heads of all images, numbered image after image.
class AllHeads {
 public:
  AllHeads(const AttentionShape& shape, const float* qkv) : shape_(shape), qkv_(qkv) {}

  int64_t count() const { return shape_.images * shape_.heads; }
  int64_t size() const { return shape_.width / shape_.heads; }
  // The offset of a head's first element in an array [B,rows,columns].
  int64_t offset(int64_t head, int64_t rows, int64_t columns) const {
    return head / shape_.heads * rows * columns + head % shape_.heads * size();
  }
  AttentionHead at(int64_t head) const {
    const int64_t width = shape_.width;
    const float* const q = qkv_ + offset(head, shape_.tokens, 3 * width);
    return {q, q + width, q + 2 * width, 3 * width, shape_.tokens, size(), 1 / std::sqrt(static_cast<float>(size()))};
  }

 private:
  const AttentionShape& shape_;
  const float* qkv_;
};

}  // namespace

void attention_forward(Threads& threads, const AttentionShape& shape, const float* qkv, float* out, float* log_sum) {
  const Kernels& kernel = kernels();
  const AllHeads all(shape, qkv);
  const int64_t queries = shape.queries, width = shape.width;
  // Heads too few to keep all threads busy are split into parts of their queries, each of which packs the keys again.
  const int64_t wanted = pieces_for_all_threads(threads, all.count());
  const Runs parts(queries, std::max(kQueries, (queries + wanted - 1) / wanted));
  run_tasks(threads, all.count() * parts.runs, [&](int64_t number, const auto& claim) {
    const int64_t head = number / parts.runs, part = number % parts.runs;
    AttentionForward p;
    p.head = all.at(head);
    p.first = parts.first(part), p.count = parts.length(part);
    p.out = out + all.offset(head, queries, width), p.out_ld = width;
    if (const int64_t then = claim() / parts.runs; then != head && then < all.count()) p.upcoming = all.at(then).q;
    p.bf16 = shape.bf16;
    p.log_sum = log_sum ? log_sum + head * queries : nullptr;
    p.scratch = scratch(attention_forward_floats(shape.tokens, all.size()));
    kernel.attention_forward(p);
  });
}

void attention_backward(Threads& threads, const AttentionShape& shape, const float* qkv, const AttentionGradient& from,
                        float* qkv_grad) {
  const TrainingKernels& kernel = training_kernels();
  const AllHeads all(shape, qkv);
  const int64_t tokens = shape.tokens, width = shape.width, queries = shape.queries;
  run_tasks(threads, all.count(), [&](int64_t head, const auto& claim) {
    AttentionBackward p;
    p.head = all.at(head);
    p.queries = queries;
    const int64_t at = all.offset(head, queries, width);
    p.out = from.out + at, p.out_grad = from.out_grad + at, p.out_ld = width;
    if (const int64_t then = claim(); then < all.count()) {
      p.upcoming = all.at(then).q;
      const int64_t upcoming = all.offset(then, queries, width);
      p.upcoming_out = from.out + upcoming, p.upcoming_out_grad = from.out_grad + upcoming;
    }
    p.log_sum = from.log_sum + head * queries;
    p.bf16 = shape.bf16;
    p.q_grad = qkv_grad + all.offset(head, tokens, 3 * width);
    p.k_grad = p.q_grad + width, p.v_grad = p.k_grad + width;
    for (int64_t i = queries; i < tokens; ++i) std::fill_n(p.q_grad + i * 3 * width, all.size(), 0.0f);
    p.scratch = scratch(attention_backward_floats(tokens, all.size()));
    kernel.attention_backward(p);
  });
}

}  // namespace sparsight::cpu
