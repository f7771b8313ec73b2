// ops/softmax_cross_entropy.h on the CPU in fp32. Tensors are contiguous, labels in range.
#pragma once

#include <ATen/core/Tensor.h>

namespace sparsight::cpu {

struct CrossEntropyOutput {
  at::Tensor loss;  // [B]
  // [B,2], for the backward pass: max of the logits, and sum(targets) / sum(exp(logits - max)); undefined unless
  // requested. (Not the logsumexp, of which fp32 cannot hold the fraction where logits are large.)
  at::Tensor moments;
};
// logits: [B,K]; targets: [B] int64 or [B,K] fp32; label_smoothing: for labels only.
CrossEntropyOutput softmax_cross_entropy_forward(const at::Tensor& logits, const at::Tensor& targets,
                                                 double label_smoothing, bool needs_moments);
// grad: [B], of the loss. Returns [B,K].
at::Tensor softmax_cross_entropy_backward(const at::Tensor& grad, const at::Tensor& logits, const at::Tensor& targets,
                                          double label_smoothing, const at::Tensor& moments);

}  // namespace sparsight::cpu
