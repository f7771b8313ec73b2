// Multi-head self-attention, named as in timm: qkv, proj, and with norms of queries and keys (Dehghani et al. 2023,
// "Scaling Vision Transformers to 22 Billion Parameters", section 2) q_norm and k_norm, which treat each head by
// itself.
#pragma once

#include "sparsight/nn/linear.h"
#include "sparsight/nn/norm.h"
#include "sparsight/ops/residual_add.h"

namespace sparsight {

struct AttentionOptions {
  int64_t width = 0;  // D, a multiple of heads
  int64_t heads = 0;
  bool qkv_bias = true;
  bool qk_norm = false;
  double norm_eps = LayerNormImpl::kEpsilon;  // of these norms
};

class AttentionImpl : public torch::nn::Module {
 public:
  explicit AttentionImpl(const AttentionOptions& options);
  at::Tensor forward(const at::Tensor& x);                  // [B,S,D] -> [B,S,D]
  at::Tensor forward(const at::Tensor& x, LayerNorm norm);  // of norm(x), which is not kept for the backward pass
  // x + drop(gamma * forward(x, norm)), as one operation. gamma: [D], or undefined for ones.
  at::Tensor forward_residual(const at::Tensor& x, LayerNorm norm, const BranchDrop& drop = {},
                              const at::Tensor& gamma = {});
  // The first `queries` tokens of each image alone, [B,queries,D], which attend to all.
  at::Tensor forward_residual(const at::Tensor& x, LayerNorm norm, const BranchDrop& drop, int64_t queries,
                              const at::Tensor& gamma = {});
  Cost cost(int64_t tokens, int64_t queries) const;  // per image, of `queries` outputs

  Linear qkv() const { return qkv_; }
  Linear proj() const { return proj_; }
  LayerNorm q_norm() const { return q_norm_; }  // null without these norms
  LayerNorm k_norm() const { return k_norm_; }
  int64_t heads() const { return heads_; }

 private:
  // [B,S,3D] -> [B,queries,D]
  at::Tensor project(const at::Tensor& qkv, int64_t queries, const at::Tensor& gamma = {});
  at::Tensor with_normed_heads(const at::Tensor& qkv);  // [B,S,3D]; the same without these norms

  Linear qkv_, proj_;
  LayerNorm q_norm_{nullptr}, k_norm_{nullptr};  // [d], d = D / H
  int64_t heads_;
};
TORCH_MODULE(Attention);

}  // namespace sparsight
