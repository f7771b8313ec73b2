// The interface of a block of a convolutional network: a feature map in, a feature map out.
#pragma once

#include <string>
#include <vector>

#include <torch/nn/module.h>

#include "sparsight/cost/part_cost.h"
#include "sparsight/nn/packed_convs.h"
#include "sparsight/ops/weight_type.h"

namespace sparsight {

class ConvBlock : public torch::nn::Module {
 public:
  // [B,in,H,W] -> [B,out,ceil(H/stride),ceil(W/stride)]. batch_statistics: of its batch norms, if it has any.
  virtual at::Tensor forward(const at::Tensor& x, bool batch_statistics) = 0;
  // Per image. map: size of the input, set to that of the output.
  virtual std::vector<PartCost> cost(const std::string& path, MapSize& map) const = 0;
  // The block without tensors, in evaluation: with its running averages and packed weights.
  virtual std::vector<engine::ConvStep> conv_steps(WeightType type) const = 0;
};

}  // namespace sparsight
