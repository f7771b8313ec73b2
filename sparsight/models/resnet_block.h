// The residual blocks of ResNet (He et al. 2016, "Deep residual learning for image recognition", figure 5) under
// torchvision's names: two 3x3 convolutions, or the bottleneck 1x1, 3x3, 1x1, each followed by a batch norm.
#pragma once

#include <string>
#include <vector>

#include "sparsight/cost/part_cost.h"
#include "sparsight/nn/freeze_convs.h"

namespace sparsight {

struct ResnetBlockOptions {
  int64_t in = 0;     // channels
  int64_t width = 0;  // channels of the 3x3 convolutions
  // Differs from the paper: a bottleneck halves the resolution in its 3x3 convolution, as torchvision's ("v1.5"), and
  // not in its first one.
  int64_t stride = 1;
  bool bottleneck = false;
  int64_t out() const { return bottleneck ? 4 * width : width; }
};

// The batch norms of ResNets, with PyTorch's epsilon and momentum.
BatchNorm resnet_norm(int64_t channels);

// relu(shortcut(x) + bn(conv(... relu(bn1(conv1(x))))))
class ResnetBlock : public torch::nn::Module {
 public:
  explicit ResnetBlock(const ResnetBlockOptions& options);
  // [B,in,H,W] -> [B,out,ceil(H/stride),ceil(W/stride)]. batch_statistics: of its batch norms.
  at::Tensor forward(const at::Tensor& x, bool batch_statistics);
  // Per image. map: size of the input, set to that of the output.
  std::vector<PartCost> cost(const std::string& path, MapSize& map) const;
  void freeze(WeightType type);  // see ImageModel::freeze

 private:
  std::vector<Conv> convs_;           // conv1, conv2 and, of a bottleneck, conv3
  std::vector<BatchNorm> norms_;      // bn1 ..., one after each of them
  Conv shortcut_{nullptr};            // downsample.0, 1x1, where the shape changes; else null
  BatchNorm shortcut_norm_{nullptr};  // downsample.1
  ConvsCopy frozen_;
};

}  // namespace sparsight
