// The loss of a classifier: cross-entropy of the softmax of logits, row by row. Letters: moe/axes.md. fp32 on a CPU has
// kernels, which keep two numbers per row for the backward pass instead of [B,K] probabilities, and whose results have
// the same bits for any number of threads.
#pragma once

#include <ATen/core/Tensor.h>

namespace sparsight {

// logits: [B,K], floating, K >= 1; targets: labels [B] int64 from 0 to K-1, or shares of the classes [B,K], floating.
// Returns [B], in fp64 for logits in fp64, else in fp32: -sum_k t_k log softmax(logits)_k, where t is
// (1 - label_smoothing) targets + label_smoothing / K (Szegedy et al. 2016, section 7; of labels: of their one-hot
// rows). label_smoothing: from 0 to below 1.
// Extreme values do what they do in torch's cross-entropy: a class with logit -inf has probability 0, and a loss of
// +inf as label; rows with NaN, with +inf or with nothing but -inf are NaN. So is the loss, but not the gradient, where
// a class at -inf has a share of 0 in targets [B,K]. Differentiable any number of times. Raises Error for other shapes,
// types and, on the CPU, labels.
at::Tensor softmax_cross_entropy(const at::Tensor& logits, const at::Tensor& targets, double label_smoothing = 0);

}  // namespace sparsight
