// Multi-head self-attention between the projections of a transformer block. Letters: moe/axes.md; H heads, d = D / H
// size of a head. fp32 on a CPU has fused kernels (docs/kernels.md, "Attention"), which keep no matrix of scores and
// whose results have the same bits for any number of threads.
#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

namespace sparsight {

// qkv: [B,S,3D], floating: queries, keys and values one after the other, each H times d columns. Returns [B,S,D]:
// softmax(q k^T / sqrt(d)) v per image and head. With `queries` Q, only of the first Q tokens of each image, [B,Q,D].
// Differentiable once. Raises Error for other shapes and types, and for Q < 1 or > S.
at::Tensor attention(const at::Tensor& qkv, int64_t heads, std::optional<int64_t> queries = {});

// The checks of attention().
void check_attention(const at::Tensor& qkv, int64_t heads, std::optional<int64_t> queries = {});

// The same without autograd. Tensors are contiguous.
struct AttentionOutput {
  at::Tensor out;      // [B,Q,D]
  at::Tensor log_sum;  // [B,H,Q], for the backward pass: log2 of the sum of exp(scores); undefined unless requested
};
AttentionOutput attention_forward(const at::Tensor& qkv, int64_t heads, bool needs_log_sum, int64_t queries);
// grad: [B,Q,D], of the result; `forward`: from attention_forward(). Returns the gradient of qkv.
at::Tensor attention_backward(const at::Tensor& grad, const at::Tensor& qkv, const AttentionOutput& forward);

}  // namespace sparsight
