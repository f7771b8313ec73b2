// The 1x1 convolution beside a residual branch that changes the shape of the map, with a batch norm or without. Its
// parameters have the names of a torch.nn.Sequential: "0.weight", and "1.weight" of the norm.
#pragma once

#include "sparsight/nn/conv_block.h"

namespace sparsight {

class ConvShortcut : public ConvBlock {
 public:
  ConvShortcut(int64_t in, int64_t out, int64_t stride, bool with_norm);
  at::Tensor forward(const at::Tensor& x, bool batch_statistics) override;
  std::vector<PartCost> cost(const std::string& path, MapSize& map) const override;
  std::vector<engine::ConvStep> conv_steps(WeightType type) const override;

 private:
  Conv conv_;
  BatchNorm norm_{nullptr};
};

}  // namespace sparsight
