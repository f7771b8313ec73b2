// Multi-head self-attention between the projections of a transformer block. Letters: moe/axes.md; H heads, d = D / H
// size of a head. fp32 on a CPU has fused kernels (docs/kernels.md, "Attention"), which keep no matrix of scores and
// whose results have the same bits for any number of threads.
#pragma once

#include <ATen/core/Tensor.h>

namespace sparsight {

// qkv: [B,S,3D], floating: queries, keys and values one after the other, each H times d columns. Returns [B,S,D]:
// softmax(q k^T / sqrt(d)) v per image and head. Differentiable once. Raises Error for other shapes and types.
at::Tensor attention(const at::Tensor& qkv, int64_t heads);

// The checks of attention().
void check_attention(const at::Tensor& qkv, int64_t heads);

// The same without autograd. Tensors are contiguous.
struct AttentionOutput {
  at::Tensor out;      // [B,S,D]
  at::Tensor log_sum;  // [B,H,S], for the backward pass: log2 of the sum of exp(scores); undefined unless requested
};
AttentionOutput attention_forward(const at::Tensor& qkv, int64_t heads, bool needs_log_sum);
// grad: [B,S,D], of the result; `forward`: from attention_forward(). Returns the gradient of qkv.
at::Tensor attention_backward(const at::Tensor& grad, const at::Tensor& qkv, const AttentionOutput& forward);

}  // namespace sparsight
