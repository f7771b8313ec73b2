// The classification loss: cross entropy with hard labels or soft targets.
#pragma once

#include "sparsight/data/sample.h"

namespace sparsight {

// logits: [B,K]. Mean over the batch of -sum_k target_k log softmax(logits)_k; targets are batch.targets if they are
// defined (mixup, cutmix, label smoothing), else one-hot batch.labels. Returns [] in at least fp32.
at::Tensor task_loss(const at::Tensor& logits, const Batch& batch);

// Number of rows whose largest logit is at the label. labels: [B].
int64_t count_correct(const at::Tensor& logits, const at::Tensor& labels);

}  // namespace sparsight
