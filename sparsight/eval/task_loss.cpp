#include "sparsight/eval/task_loss.h"

#include <ATen/ops/argmax.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/sum.h>

namespace sparsight {

at::Tensor task_loss(const at::Tensor& logits, const Batch& batch) {
  const at::Tensor wide = logits.scalar_type() == at::kDouble ? logits : logits.to(at::kFloat);
  if (batch.targets.defined()) return at::cross_entropy_loss(wide, batch.targets.to(wide.scalar_type()));
  return at::cross_entropy_loss(wide, batch.labels);
}

int64_t count_correct(const at::Tensor& logits, const at::Tensor& labels) {
  return at::argmax(logits, 1).eq(labels).sum().item<int64_t>();
}

}  // namespace sparsight
