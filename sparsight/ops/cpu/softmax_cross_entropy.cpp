#include "sparsight/ops/cpu/softmax_cross_entropy.h"

#include <ATen/ops/empty.h>

#include "sparsight/kernels/elementwise/softmax_cross_entropy.h"
#include "sparsight/ops/cpu/arena.h"
#include "sparsight/ops/torch_threads.h"

namespace sparsight::cpu {
namespace {

CrossEntropyRows make_rows(const at::Tensor& logits, const at::Tensor& targets, double label_smoothing) {
  const bool labels = targets.dim() == 1;
  return {.rows = logits.size(0),
          .classes = logits.size(1),
          .logits = logits.const_data_ptr<float>(),
          .targets = labels ? nullptr : targets.const_data_ptr<float>(),
          .labels = labels ? targets.const_data_ptr<int64_t>() : nullptr,
          .label_smoothing = label_smoothing};
}

}  // namespace

CrossEntropyOutput softmax_cross_entropy_forward(const at::Tensor& logits, const at::Tensor& targets,
                                                 double label_smoothing, bool needs_moments) {
  const int64_t rows = logits.size(0);
  CrossEntropyOutput output{at::empty({rows}, at::kFloat), {}};
  if (needs_moments) output.moments = at::empty({rows, 2}, at::kFloat);
  softmax_cross_entropy(torch_threads(), make_rows(logits, targets, label_smoothing), output.loss.data_ptr<float>(),
                        needs_moments ? output.moments.data_ptr<float>() : nullptr);
  return output;
}

at::Tensor softmax_cross_entropy_backward(const at::Tensor& grad, const at::Tensor& logits, const at::Tensor& targets,
                                          double label_smoothing, const at::Tensor& moments) {
  at::Tensor out = empty_from_arena(logits.sizes());
  softmax_cross_entropy_backward(torch_threads(), make_rows(logits, targets, label_smoothing),
                                 moments.const_data_ptr<float>(), grad.const_data_ptr<float>(), out.data_ptr<float>());
  return out;
}

}  // namespace sparsight::cpu
