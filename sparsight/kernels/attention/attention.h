// Multi-head self-attention (ops/attention.h) in fp32. Each head of each image is a task of its own, in the forward
// pass also each part of its queries if there are few: results have the same bits for any number of threads.
#pragma once

#include "sparsight/kernels/threads/threads.h"

namespace sparsight::cpu {

struct AttentionShape {
  int64_t images = 0, tokens = 0, heads = 1, width = 0;  // B, S, H, D
  int64_t queries = 0;                                   // Q: of the first tokens of each image, 1 .. S
  bool bf16 = false;                                     // products of bf16, if the level multiplies it
};

// qkv: [B,S,3D]; out: [B,Q,D]; log_sum: [B,H,Q], log2 of the sum of exp(scores), for the backward pass; or null.
void attention_forward(Threads& threads, const AttentionShape& shape, const float* qkv, float* out, float* log_sum);

// What the forward pass gave, and the gradient of `out`.
struct AttentionGradient {
  const float *out = nullptr, *log_sum = nullptr, *out_grad = nullptr;
};
// qkv_grad: [B,S,3D].
void attention_backward(Threads& threads, const AttentionShape& shape, const float* qkv, const AttentionGradient& from,
                        float* qkv_grad);

}  // namespace sparsight::cpu
