// The block of MobileNetV2 (Sandler et al. 2018, "MobileNetV2: Inverted Residuals and Linear Bottlenecks", table 1 and
// figure 4) under torchvision's names: 1x1 convolution to `expand` times the channels, depthwise 3x3 convolution, 1x1
// convolution to the output channels, each followed by a batch norm, the first two also by ReLU6. The input is added
// where it has the shape of the output. With `expand` 1 there is no first convolution.
#pragma once

#include <string>
#include <vector>

#include "sparsight/nn/conv_block.h"

namespace sparsight {

struct InvertedResidualOptions {
  int64_t in = 0, out = 0;  // channels
  int64_t stride = 1;
  int64_t expand = 6;
  bool branch = false;  // only what is added to the input
  bool has_residual() const { return stride == 1 && in == out; }
};

// One step of a packed network: convolution, folded batch norm, ReLU6.
engine::ConvStep relu6_conv_step(const ConvImpl& conv, const BatchNormImpl& norm, WeightType type);

class InvertedResidual : public ConvBlock {
 public:
  explicit InvertedResidual(const InvertedResidualOptions& options);
  at::Tensor forward(const at::Tensor& x, bool batch_statistics) override;
  std::vector<PartCost> cost(const std::string& path, MapSize& map) const override;
  std::vector<engine::ConvStep> conv_steps(WeightType type) const override;

 private:
  bool adds_input() const { return options_.has_residual() && !options_.branch; }

  InvertedResidualOptions options_;
  std::vector<Conv> convs_;         // conv.0.0, conv.1.0 and conv.2; with `expand` 1 conv.0.0 and conv.1
  std::vector<BatchNorm> norms_;    // conv.0.1, conv.1.1 and conv.3; conv.0.1 and conv.2
  std::vector<std::string> names_;  // of convs_, then of norms_
};

}  // namespace sparsight
