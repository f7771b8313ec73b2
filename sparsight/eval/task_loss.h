// The classification loss: cross entropy of the softmax or, where images may have several classes, of each class's
// sigmoid. Letters: moe/axes.md; K here is classes.
#pragma once

#include <string>

#include "sparsight/data/data_set.h"

namespace sparsight {

enum class TaskLoss { cross_entropy, sigmoid_cross_entropy };

// name: [train] task_loss. "auto" is sigmoid_cross_entropy for a model that is trained on multi-label `data`, else
// cross_entropy.
TaskLoss task_loss_named(const std::string& name, const DataInfo& data);

// logits: [B,K]. Mean over the batch; the targets are batch.targets if they are defined (mixup, cutmix, label
// smoothing), else those of batch.true_labels(). Returns [] in at least fp32.
//   cross_entropy           -sum_k t_k log softmax(logits)_k; of label sets, t are the targets divided by their sum
//   sigmoid_cross_entropy   the sum over classes of sigmoid_cross_entropy()
// class_weights: [K], not negative, for cross_entropy of one label per image; undefined: none. Then it is that of
// torch.nn.CrossEntropyLoss(weight=class_weights): -sum_k w_k t_k log softmax(logits)_k of each image, summed over the
// batch and divided by the sum of the weights of its labels or, of a mixed batch, whose targets are probabilities, by
// B. Differs from torch: a batch that has only labels of weight 0 gives 0, not NaN.
at::Tensor task_loss(const at::Tensor& logits, const Batch& batch, TaskLoss loss = TaskLoss::cross_entropy,
                     const at::Tensor& class_weights = {});

// logits: [B,K]; targets: [B,K] of 0 to 1 (or bool), or [B] int64 classes. Returns [B] in at least fp32:
// sum_k softplus(z_k) - t_k z_k, the cross entropy of K independent yes-or-no questions.
at::Tensor sigmoid_cross_entropy(const at::Tensor& logits, const at::Tensor& targets);

// [B,K]: the model's probabilities of the classes, by softmax or each by its sigmoid.
at::Tensor class_probabilities(const at::Tensor& logits, TaskLoss loss);

// Number of rows whose largest logit is at the label, or at one of the labels. labels: [B] int64 or [B,K] bool.
int64_t count_correct(const at::Tensor& logits, const at::Tensor& labels);

// The name of their share in metrics.jsonl: "accuracy", of multi-label data "precision_at_1".
const char* correct_share_name(const DataInfo& data);

}  // namespace sparsight
