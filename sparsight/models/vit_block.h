// A pre-norm transformer block, named as in timm: norm1, attn, ls1, norm2, mlp, ls2. Letters: moe/axes.md.
#pragma once

#include "sparsight/engine/transformer_block.h"
#include "sparsight/models/block_mlp.h"
#include "sparsight/models/normed_linear.h"
#include "sparsight/nn/attention.h"
#include "sparsight/nn/layer_scale.h"
#include "sparsight/nn/norm.h"

namespace sparsight {

struct VitBlockOptions {
  AttentionOptions attention;
  int64_t mlp_hidden = 0;     // F of the dense MLP
  double dropout = 0;         // after the attention's projection and after the MLP
  double hidden_dropout = 0;  // after the activation of the dense MLP
  double drop_path = 0;
  double layer_scale = 0;  // initial factor of both branches; 0: the block has no layer scale
  double norm_eps = LayerNormImpl::kEpsilon;
  std::string path = {};   // "blocks.3"
  bool recompute = false;  // VitOptions::recompute
};

class VitBlock : public torch::nn::Module, public HasNormedLinears {
 public:
  // moe: null for a dense MLP.
  VitBlock(const VitBlockOptions& options, const MoeSpec* moe);
  // x: [B,S,D] -> [B,S,D], or [B,read,D]: only the first tokens of each image, which still attend to all.
  at::Tensor forward(const at::Tensor& x, const TokenLayout& layout, const ModelInput& input, ModelOutput& out,
                     int64_t read);
  // The taps are `path`.norm1 and `path`.norm2.
  std::vector<NormedLinear> normed_linears() override;
  // Per image, where the block returns `read` tokens.
  std::vector<PartCost> cost(const TokenLayout& layout, const CostOptions& options, const Router* deciding,
                             int64_t read) const;
  // Adds the block to a program. Only the first `read` tokens of each image are read later.
  engine::Value compile(engine::ProgramBuilder& builder, engine::Value x, int64_t read) const;

 private:
  engine::TransformerBlock packed_block(WeightType type) const;
  // The two halves. The first returns [B,read,D], or [B,S,D] for an MoE layer, which decides about all tokens.
  at::Tensor attend(const at::Tensor& x, const ModelInput& input, int64_t read);
  at::Tensor transform(const at::Tensor& x, const TokenLayout& layout, const ModelInput& input, ModelOutput& out,
                       int64_t read);
  at::Tensor forward_recomputed(const at::Tensor& x, const TokenLayout& layout, const ModelInput& input,
                                ModelOutput& out, int64_t read);
  // Dropout and drop path of the branch `name`, for the first `read` of S tokens of each image of x, [B,...].
  BranchDrop make_drop(const at::Tensor& x, const ModelInput& input, const std::string& name, int64_t tokens,
                       int64_t read) const;
  DropoutMask hidden_drop(const at::Tensor& x, const TokenLayout& layout, const ModelInput& input, int64_t read) const;

  VitBlockOptions options_;
  LayerNorm norm1_;
  Attention attn_;
  LayerScale ls1_{nullptr};
  LayerNorm norm2_;
  BlockMlp mlp_;
  LayerScale ls2_{nullptr};
};

}  // namespace sparsight
