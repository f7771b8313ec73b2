// A block of ConvNeXt (convnext.h), named as in timm: conv_dw, norm, mlp, gamma.
//
//   y = x + drop_path(gamma * mlp(norm(conv_dw(x))))
//
// conv_dw is a depthwise 7x7 convolution; norm and mlp treat each position by itself, so an MoE layer in place of the
// MLP routes positions of the map. Letters: moe/axes.md.
#pragma once

#include <string>
#include <vector>

#include "sparsight/models/block_mlp.h"
#include "sparsight/nn/conv.h"
#include "sparsight/nn/norm.h"

namespace sparsight {

struct ConvNextBlockOptions {
  int64_t width = 0;       // D
  double layer_scale = 0;  // initial gamma; 0: the block has none
  double drop_path = 0;
  std::string path = {};  // "stages.2.blocks.0"
};

class ConvNextBlock : public torch::nn::Module, public Initialized {
 public:
  // moe: null for a dense MLP.
  ConvNextBlock(const ConvNextBlockOptions& options, const MoeSpec* moe);
  at::Tensor forward(const at::Tensor& x, const ModelInput& input, ModelOutput& out);  // [B,D,H,W] -> [B,D,H,W]
  engine::Value compile(engine::ProgramBuilder& builder, engine::Value x) const;
  std::vector<PartCost> cost(MapSize map, const CostOptions& options) const;  // per image
  void initialize(const InitRandom& random) override;                         // gamma
  const std::string& path() const { return options_.path; }

 private:
  ConvNextBlockOptions options_;
  Conv conv_dw_;
  LayerNorm norm_;
  BlockMlp mlp_;
  at::Tensor gamma_;  // [D], or undefined
};

}  // namespace sparsight
