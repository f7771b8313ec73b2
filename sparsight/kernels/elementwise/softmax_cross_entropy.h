// Cross-entropy of the softmax of rows of logits (ops/softmax_cross_entropy.h) in fp32: the same bits for any number of
// threads.
#pragma once

#include "sparsight/kernels/threads/threads.h"

namespace sparsight::cpu {

// Logits [B,K] with their targets.
struct CrossEntropyRows {
  int64_t rows = 0, classes = 1;    // B, K
  const float* logits = nullptr;    // [B,K]
  const float* targets = nullptr;   // [B,K], or null
  const int64_t* labels = nullptr;  // [B], 0 .. K-1, where targets are null
  double label_smoothing = 0;       // of labels
};

// loss: [B]. moments: [B,2], for the backward pass: max of the logits, and sum(targets) / sum(exp(logits - max)); or
// null. (Not the logsumexp, of which fp32 cannot hold the fraction where logits are large.)
void softmax_cross_entropy(Threads& threads, const CrossEntropyRows& rows, float* loss, float* moments);

// grad: [B], of the loss. out: [B,K], the gradient of the logits.
void softmax_cross_entropy_backward(Threads& threads, const CrossEntropyRows& rows, const float* moments,
                                    const float* grad, float* out);

}  // namespace sparsight::cpu
