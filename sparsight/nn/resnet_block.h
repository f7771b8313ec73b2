// The residual blocks of ResNet (He et al. 2016, "Deep residual learning for image recognition", figure 5) under
// torchvision's names: two 3x3 convolutions, or the bottleneck 1x1, 3x3, 1x1, each followed by a batch norm.
#pragma once

#include <string>
#include <vector>

#include "sparsight/nn/conv_block.h"

namespace sparsight {

struct ResnetBlockOptions {
  int64_t in = 0;     // channels
  int64_t width = 0;  // channels of the 3x3 convolutions
  // Differs from the paper: a bottleneck halves the resolution in its 3x3 convolution, as torchvision's ("v1.5"), and
  // not in its first one.
  int64_t stride = 1;
  bool bottleneck = false;
  bool branch = false;  // only what is added to the shortcut
  bool has_projection() const { return stride != 1 || in != out(); }
  int64_t out() const { return bottleneck ? 4 * width : width; }
};

// relu(shortcut(x) + bn(conv(... relu(bn1(conv1(x))))))
class ResnetBlock : public ConvBlock {
 public:
  explicit ResnetBlock(const ResnetBlockOptions& options);
  at::Tensor forward(const at::Tensor& x, bool batch_statistics) override;
  std::vector<PartCost> cost(const std::string& path, MapSize& map) const override;
  std::vector<engine::ConvStep> conv_steps(WeightType type) const override;

 private:
  std::vector<Conv> convs_;           // conv1, conv2 and, of a bottleneck, conv3
  std::vector<BatchNorm> norms_;      // bn1 ..., one after each of them
  Conv shortcut_{nullptr};            // downsample.0, 1x1, where the shape changes; else null
  BatchNorm shortcut_norm_{nullptr};  // downsample.1
  bool branch_;
};

}  // namespace sparsight
