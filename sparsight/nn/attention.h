// Multi-head self-attention, named as in timm: qkv, proj.
#pragma once

#include "sparsight/nn/linear.h"
#include "sparsight/nn/norm.h"
#include "sparsight/ops/residual_add.h"

namespace sparsight {

struct AttentionOptions {
  int64_t width = 0;  // D, a multiple of heads
  int64_t heads = 0;
  bool qkv_bias = true;
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
  int64_t heads() const { return heads_; }

 private:
  // [B,S,3D] -> [B,queries,D]
  at::Tensor project(const at::Tensor& qkv, int64_t queries, const at::Tensor& gamma = {});

  Linear qkv_, proj_;
  int64_t heads_;
};
TORCH_MODULE(Attention);

}  // namespace sparsight
