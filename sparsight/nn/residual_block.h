// A residual block of two 3x3 convolutions with group norm.
#pragma once

#include <string>
#include <vector>

#include "sparsight/nn/conv_block.h"

namespace sparsight {

struct ResidualBlockOptions {
  int64_t in = 0, out = 0;  // channels
  int64_t stride = 1;
  bool branch = false;  // only what is added to the shortcut: norm2(conv2(relu(norm1(conv1(x)))))
  bool has_projection() const { return in != out || stride != 1; }
};

// relu(shortcut(x) + norm2(conv2(relu(norm1(conv1(x))))))
class ResidualBlockImpl : public ConvBlock {
 public:
  explicit ResidualBlockImpl(const ResidualBlockOptions& options);
  at::Tensor forward(const at::Tensor& x);
  at::Tensor forward(const at::Tensor& x, bool) override { return forward(x); }
  std::vector<PartCost> cost(const std::string& path, MapSize& map) const override;
  std::vector<engine::ConvStep> conv_steps(WeightType type) const override;

 private:
  Conv conv1_;
  GroupNorm norm1_;
  Conv conv2_;
  GroupNorm norm2_;
  Conv shortcut_{nullptr};  // 1x1, where the shape changes
  bool branch_;
};
TORCH_MODULE(ResidualBlock);

}  // namespace sparsight
