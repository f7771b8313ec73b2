#include "sparsight/eval/task_loss.h"

#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/sum.h>

#include <ATen/core/Reduction.h>

#include "sparsight/core/error.h"
#include "sparsight/eval/precision_at_one.h"
#include "sparsight/ops/softmax_cross_entropy.h"

namespace sparsight {
namespace {

at::ScalarType loss_type(const at::Tensor& logits) {
  return logits.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

at::Tensor weighted_cross_entropy(const at::Tensor& logits, const Batch& batch, const at::Tensor& class_weights) {
  SPARSIGHT_CHECK(!batch.label_sets.defined() && class_weights.numel() == logits.size(1));
  const at::Tensor w = class_weights.to(logits.device(), loss_type(logits));
  const at::Tensor own = w.index_select(0, batch.labels);  // [B]
  const at::Tensor losses = batch.targets.defined() ? softmax_cross_entropy(logits, batch.targets * w)
                                                    : own * softmax_cross_entropy(logits, batch.labels);
  if (batch.mixed) return losses.mean();
  const at::Tensor sum = own.sum();
  return losses.sum() / sum.masked_fill(sum.eq(0), std::numeric_limits<double>::infinity());
}

}  // namespace

TaskLoss task_loss_named(const std::string& name, const DataInfo& data) {
  if (name == "auto") return data.multi_label ? TaskLoss::sigmoid_cross_entropy : TaskLoss::cross_entropy;
  SPARSIGHT_CHECK(name == "cross_entropy" || name == "sigmoid_cross_entropy");
  return name == "cross_entropy" ? TaskLoss::cross_entropy : TaskLoss::sigmoid_cross_entropy;
}

at::Tensor task_loss(const at::Tensor& logits, const Batch& batch, TaskLoss loss, const at::Tensor& class_weights) {
  at::Tensor targets = batch.targets.defined() ? batch.targets : batch.true_labels();
  if (class_weights.defined()) {
    SPARSIGHT_CHECK(loss == TaskLoss::cross_entropy);
    return weighted_cross_entropy(logits, batch, class_weights);
  }
  if (loss == TaskLoss::sigmoid_cross_entropy) return sigmoid_cross_entropy(logits, targets).mean();
  if (batch.label_sets.defined()) {
    targets = targets.to(loss_type(logits));
    targets = targets / targets.sum(1, /*keepdim=*/true);
  }
  return softmax_cross_entropy(logits, targets).mean();
}

at::Tensor sigmoid_cross_entropy(const at::Tensor& logits, const at::Tensor& targets) {
  const at::Tensor z = logits.to(loss_type(logits));
  const at::Tensor t = targets.dim() == 1 ? at::one_hot(targets, z.size(1)) : targets;
  return at::binary_cross_entropy_with_logits(z, t.to(z.scalar_type()), {}, {}, at::Reduction::None).sum(1);
}

at::Tensor class_probabilities(const at::Tensor& logits, TaskLoss loss) {
  return loss == TaskLoss::cross_entropy ? logits.softmax(-1) : logits.sigmoid();
}

int64_t count_correct(const at::Tensor& logits, const at::Tensor& labels) {
  return precision_at_one(logits, labels).hits;
}

const char* correct_share_name(const DataInfo& data) { return data.multi_label ? "precision_at_1" : "accuracy"; }

}  // namespace sparsight
