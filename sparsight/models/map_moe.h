// An MoE layer on a feature map, for convolutional networks: x + moe(norm(x)), whose tokens are the map's positions.
#pragma once

#include <memory>
#include <vector>

#include "sparsight/models/block_mlp.h"

namespace sparsight {

class MapMoe : public torch::nn::Module {
 public:
  MapMoe(const LayerContext& context, const MoeSpec& moe);
  at::Tensor forward(const at::Tensor& x, const ModelInput& input, ModelOutput& out);  // [B,D,H,W] -> [B,D,H,W]
  engine::Value compile(engine::ProgramBuilder& builder, engine::Value x) const;
  std::vector<PartCost> cost(MapSize map, const CostOptions& options) const;  // per image

 private:
  LayerNorm norm_;
  BlockMlp mlp_;
};

// The layer as the model's "moe", with experts of twice the width, where [moe] blocks is [0] or [-1]; else null. There
// is only one position for it.
std::shared_ptr<MapMoe> register_map_moe(torch::nn::Module& model, const MoeSpec& moe, int64_t channels);

}  // namespace sparsight
