// ops/softmax_cross_entropy.h on torch's operations, for any device and floating type; at least in fp32. Differentiable
// any number of times.
#pragma once

#include <ATen/core/Tensor.h>

namespace sparsight::ref {

// logits: [B,K]; targets: [B] int64 or [B,K]; label_smoothing: for labels only. Returns [B].
at::Tensor softmax_cross_entropy(const at::Tensor& logits, const at::Tensor& targets, double label_smoothing);
// grad: [B], of the result. Returns the gradient of the logits, [B,K].
at::Tensor softmax_cross_entropy_gradient(const at::Tensor& grad, const at::Tensor& logits, const at::Tensor& targets,
                                          double label_smoothing);

}  // namespace sparsight::ref
