// Attention pooling (Zhai et al. 2022, "Scaling Vision Transformers", section 2.2): one learned query attends to all
// tokens, and an MLP follows. Named as timm's AttentionPoolLatent: latent, q, kv, proj, norm, mlp. Letters:
// moe/axes.md.
#pragma once

#include "sparsight/engine/program_builder.h"
#include "sparsight/nn/linear.h"
#include "sparsight/nn/mlp.h"
#include "sparsight/nn/norm.h"

namespace sparsight {

struct AttentionPoolOptions {
  int64_t width = 0;  // D, a multiple of heads
  int64_t heads = 0;
  int64_t mlp_hidden = 0;  // F
  bool bias = true;        // of q and kv
  double norm_eps = LayerNormImpl::kEpsilon;
};

class AttentionPoolImpl : public torch::nn::Module, public Initialized {
 public:
  explicit AttentionPoolImpl(const AttentionPoolOptions& options);
  at::Tensor forward(const at::Tensor& x);  // [B,S,D] -> [B,D]; all tokens are read
  // x: [S,D], of which the rows that are no patches are not read.
  engine::Value compile(engine::ProgramBuilder& builder, engine::Value x) const;
  Cost cost(int64_t tokens) const;                     // per image
  void initialize(const InitRandom& random) override;  // latent N(0, 1/D), as timm

 private:
  AttentionPoolOptions options_;
  at::Tensor latent_;  // [1,1,D]
  Linear q_{nullptr}, kv_{nullptr}, proj_{nullptr};
  LayerNorm norm_{nullptr};
  Mlp mlp_{nullptr};
};
TORCH_MODULE(AttentionPool);

}  // namespace sparsight
