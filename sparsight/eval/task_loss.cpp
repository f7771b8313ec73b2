#include "sparsight/eval/task_loss.h"

#include <ATen/ops/argmax.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/sum.h>

#include "sparsight/ops/softmax_cross_entropy.h"

namespace sparsight {

at::Tensor task_loss(const at::Tensor& logits, const Batch& batch) {
  return softmax_cross_entropy(logits, batch.targets.defined() ? batch.targets : batch.labels).mean();
}

int64_t count_correct(const at::Tensor& logits, const at::Tensor& labels) {
  return at::argmax(logits, 1).eq(labels).sum().item<int64_t>();
}

}  // namespace sparsight
